# SPDX-License-Identifier: Apache-2.0
"""SQLAlchemy's ORM on SQLite."""
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list["Book"]] = relationship()


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))


while True:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Author(name=f"a{i}", books=[Book(title=f"t{i} {k}") for k in range(3)]) for i in range(40))
        session.commit()
        for author in session.scalars(select(Author).order_by(Author.name)):
            assert len(author.books) == 3
        session.execute(select(Author.name, func.count(Book.id)).join(Book).group_by(Author.name)).all()
