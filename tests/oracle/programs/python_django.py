# SPDX-License-Identifier: Apache-2.0
"""Django's template engine."""
import django
from django.conf import settings
from django.template import Context, Template

settings.configure(TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()
template = Template(
    "{% for x in rows %}<li>{{ x.name|upper|truncatewords:3 }}{% if x.n > 3 %}!{% endif %}</li>{% endfor %}"
)
rows = [{"name": f"some name {i} here", "n": i} for i in range(80)]
while True:
    template.render(Context({"rows": rows}))
