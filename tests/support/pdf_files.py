"""PDF files of a few lines."""


def pdf(pages: tuple[str, ...], title: str = "") -> bytes:
    """Return a PDF of some pages (PDF 32000-1:2008, 7.5), without its offsets."""
    streams = [f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET" for text in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(streams):
        parts += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Contents {5 + 2 * n} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    parts.append(f"<< /Title ({title}) >>")
    objects = "".join(f"{n} 0 obj\n{part}\nendobj\n" for n, part in enumerate(parts, 1))
    count = len(parts)
    trailer = f"trailer\n<< /Size {count + 1} /Root 1 0 R /Info {count} 0 R >>\n%%EOF"
    return f"%PDF-1.4\n{objects}{trailer}".encode()
