# SPDX-License-Identifier: Apache-2.0
"""Pillow: filters, resampling, JPEG and PNG."""
import io

from PIL import Image, ImageFilter

image = Image.effect_mandelbrot((256, 256), (-2, -1.5, 1, 1.5), 60).convert("RGB")
while True:
    small = image.rotate(30).resize((100, 100), Image.LANCZOS).filter(ImageFilter.GaussianBlur(2))
    for kind in ("JPEG", "PNG"):
        out = io.BytesIO()
        small.save(out, kind)
        Image.open(io.BytesIO(out.getvalue())).load()
