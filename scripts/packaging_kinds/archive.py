"""Tar archives whose bytes depend on what is in them and on nothing else."""

import gzip
import io
import tarfile


def tar_bytes(entries, epoch):
    """entries: (path, mode, bytes); None for a directory, a string for a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, mode, content in entries:
            entry = tarfile.TarInfo(path)
            entry.mode, entry.mtime = mode, epoch
            if content is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
            else:
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return buffer.getvalue()


def gzip_bytes(content):
    return gzip.compress(content, 6, mtime=0)
