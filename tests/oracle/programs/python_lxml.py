# SPDX-License-Identifier: Apache-2.0
"""lxml: parsing, XPath, XSLT by libxml2."""
from lxml import etree

text = "<r>" + "".join(f"<i n='{i}'><b>t{i}</b></i>" for i in range(500)) + "</r>"
sheet = etree.XSLT(
    etree.XML(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template'
        ' match="/"><o><xsl:for-each select="//b"><p><xsl:value-of'
        ' select="."/></p></xsl:for-each></o></xsl:template></xsl:stylesheet>'
    )
)
while True:
    tree = etree.fromstring(text)
    tree.xpath("//i[@n > 250]/b/text()")
    str(sheet(tree))
