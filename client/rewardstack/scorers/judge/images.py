"""Collect the images that a judge sees, from chat messages and from `extra_info.images`."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from rewardstack.core.fields import LONGEST, Fields, field_error

IMAGES = "images"
IMAGE_PARTS = ("image_url", "image", "input_image")
"""Types of message parts with an image."""
MEDIA = ("videos", "video", "audios", "audio")
"""Fields of `extra_info` in which data sets have the audio and video of a task."""
IMAGE_MARK = "\ufffc"
"""Placeholder for a part that is not a text in the text of a turn, until the part has a label."""
MAX_IMAGES = 16
"""Maximum number of images of a sample."""
MAX_CHARACTERS = 20_000_000
"""Maximum length of an image as a data URL, in characters."""
TOKENS_PER_IMAGE = 1000
"""Estimated number of tokens of an image in a prompt."""
SOURCES = ("image_url", "image", "source", "url", "bytes")
"""Fields of a message part, or of an image in a data set, that may contain the image."""

_SIGNATURES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
_DATA_URL = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/=_-]{4}")
_WEB_URL = re.compile(r"https?://\S{1,4000}\Z")


class ImageReader:
    """Collects the images of one sample, in the order in which the judge sees them.

    Args:
        extra: the sample's `extra_info`. The field `images` has one image for each message part without image data, in
            order, and may have further images after these. If `images` is false, the judge sees no images.
        allow_urls: whether an image may be a web URL, which the judge's server then fetches.
    """

    def __init__(self, extra: Mapping[str, Any], *, allow_urls: bool) -> None:
        value = Fields(extra).get(IMAGES)
        self._is_off = value is False
        self._pending = [] if value in (None, False) else value if isinstance(value, list) else [value]
        self._allow_urls = allow_urls
        self._urls: list[str] = []

    def add(self, part: Any) -> str:
        """Add the image of a message part; if the part has no image data, add the next image in `images`.

        Returns:
            The label for the text, such as `[image 1]`. If `images` is false, nothing is added, and the label says so.

        Raises:
            RequestError: the part is no image (a file, a video, or of an unknown type), the image is invalid, or
                `images` has no more images.
        """
        kind = _kind(part)
        kind = "image" if kind in IMAGE_PARTS else kind[:LONGEST]
        if self._is_off:
            return f"[{kind}, which is not shown]"
        if kind != "image":
            why = f"a message has a part of the type {kind!r}, which a judge cannot be shown"
            raise field_error(IMAGES, f"{why}; send its content as text, or set images = false to send only the text")
        source: Any = part
        if all(part.get(name) is None for name in SOURCES):
            if not self._pending:
                why = "the messages refer to more images than `images` contains"
                raise field_error(IMAGES, f"{why}; add the missing images, or set images = false to send only the text")
            source = self._pending.pop(0)
        self._urls.append(self._to_url(source))
        return f"[image {len(self._urls)}]"

    def finish(self) -> tuple[str, ...]:
        """Return the URLs of the added images, then those of the images that are left in `images`.

        Raises:
            RequestError: an image is invalid, or there are more than `MAX_IMAGES`.
        """
        urls = (*self._urls, *map(self._to_url, self._pending))
        if len(urls) > MAX_IMAGES:
            raise field_error(IMAGES, f"{len(urls)} images exceed the maximum of {MAX_IMAGES} for a judge")
        return urls

    def _to_url(self, source: Any) -> str:
        """Return an image as a data URL or, if allowed, a web URL; raise RequestError if it is neither.

        Args:
            source: a URL, bytes or a PIL image, or a `dict` with one of these in a field that `SOURCES` lists.
        """
        while isinstance(source, dict):
            if source.get("type") == "file" or source.get("file_id"):
                why = "an image is a file at its provider, which the judge cannot read"
                raise field_error(IMAGES, f"{why}; send it as a data: URL, or set images = false to send only the text")
            source = next((source[name] for name in SOURCES if source.get(name) is not None), None)
        if isinstance(source, bytes):
            source = _to_data_url(source)
        elif callable(getattr(source, "save", None)):
            source = _to_data_url(_encode_png(source))
        if isinstance(source, str) and _DATA_URL.match(source):
            source = source.replace("data:image/jpg;", "data:image/jpeg;", 1)  # providers refuse the former
            if len(source) > MAX_CHARACTERS:
                raise field_error(IMAGES, f"an image has more than {MAX_CHARACTERS} characters; make it smaller")
            return source
        if not (isinstance(source, str) and _WEB_URL.match(source)):
            why = "expected PNG, JPEG, GIF or WebP as a data: URL, as bytes or as a PIL image"
            raise field_error(IMAGES, f"{why}, or a web URL if the judge has allow_image_urls = true")
        if not self._allow_urls:
            why = "a judge fetches a web URL only if [judges.NAME] in the routes file has allow_image_urls = true"
            raise field_error(IMAGES, f"{why}; send the image as a data: URL")
        return source


def _kind(part: Any) -> str:
    """Return the type of a part, or the name of its first field if it has none, such as `video`."""
    if not isinstance(part, dict):
        return type(part).__name__
    return str(part.get("type") or next(iter(part), "part"))


def check_media(extra: Mapping[str, Any]) -> None:
    """Raise RequestError if a sample has audio or video in a field of its own, which a judge cannot be shown."""
    fields = Fields(extra)
    for name in MEDIA if fields.get(IMAGES) is not False else ():
        if fields.get(name):
            why = "a judge cannot be shown audio or video"
            raise field_error(name, f"{why}; send its content as text, or set images = false to send only the text")


def make_content(images: Sequence[str], user: str) -> Any:
    """Return the content of the user message: the text `user`, or a list of parts with the images before the text."""
    if not images:
        return user
    return [*({"type": "image_url", "image_url": {"url": url}} for url in images), {"type": "text", "text": user}]


def _to_data_url(data: bytes) -> str:
    kind = next((kind for signature, kind in _SIGNATURES.items() if data.startswith(signature)), "")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}" if kind else ""


def _encode_png(image: Any) -> bytes:
    """Return a PIL image as the bytes of a PNG; empty if it cannot be encoded."""
    stream = BytesIO()
    try:
        image.save(stream, format="PNG")
    except (OSError, ValueError):
        return b""
    return stream.getvalue()
