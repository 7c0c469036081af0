"""Rich values: MIME bundles, display() and its updates, matplotlib figures, and what IPython.display offers."""

METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
display_count = 0


def base64(data):
    import binascii

    return binascii.b2a_base64(data, newline=False).decode()


def member(mime, value):
    """A MIME value as text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64(bytes(value))
    if mime.endswith("json") and not isinstance(value, str):
        import json

        return json.dumps(value, default=str)
    return str(value)


def call(value, method):
    """What a representation method gives, without metadata; nothing when it has none or fails."""
    if isinstance(value, type):
        return None
    found = getattr(value, method, None)
    if not callable(found):
        return None
    try:
        given = found()
    except NotImplementedError:
        return None
    except Exception as error:
        print("%s of %s failed: %s: %s" % (method, type(value).__name__, type(error).__name__, error), file=sys.stderr)
        return None
    return given[0] if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict) else given


def mime_bundle(value):
    """{MIME type: value}. Empty when the value showed itself."""
    if not isinstance(value, type) and callable(getattr(value, "_ipython_display_", None)):
        try:
            value._ipython_display_()
            return {}
        except NotImplementedError:
            pass
    data = {}
    figure = figure_png(value)
    if figure:
        data["image/png"] = figure
    bundle = call_mimebundle(value)
    for method, mime in METHODS:
        given = None if mime in bundle or mime in data else call(value, method)
        if given is not None:
            data[mime] = member(mime, given)
    for mime, given in bundle.items():
        data[mime] = member(mime, given)
    data.setdefault("text/plain", repr(value))
    return data


def call_mimebundle(value):
    method = None if isinstance(value, type) else getattr(value, "_repr_mimebundle_", None)
    if not callable(method):
        return {}
    try:
        given = method(include=None, exclude=None)
    except NotImplementedError:
        return {}
    except Exception as error:
        print("_repr_mimebundle_ of %s failed: %s" % (type(value).__name__, error), file=sys.stderr)
        return {}
    given = given[0] if isinstance(given, tuple) else given
    return dict(given) if given else {}


# ---- display() ----


class DisplayHandle:
    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, value, **options):
        show_values((value,), display_id=self.display_id, **options)

    def update(self, value, **options):
        show_values((value,), display_id=self.display_id, update=True, **options)

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id


def show_values(values, display_id=None, update=False, raw=False, clear=False, **ignored):
    global display_count
    if display_id is True:
        display_count += 1
        display_id = "%d-%d" % (os.getpid(), display_count)
    more = {"display_id": str(display_id)} if display_id else {}
    if update:
        more["update"] = True
    for value in values:
        data = {m: member(m, v) for m, v in value.items()} if raw else mime_bundle(value)
        if not data:
            continue
        if alone or not run_id:
            print(data.get("text/plain", ""))
        else:
            send("display", True, id=run_id, data=data, **more)
    return DisplayHandle(str(display_id)) if display_id else None


def update_display(value, display_id, **options):
    show_values((value,), display_id=display_id, update=True, **options)


# ---- matplotlib ----


def figure_png(value):
    """The picture of a matplotlib figure that is the value of a cell; it is not shown again at the cell's end."""
    module = sys.modules.get("matplotlib.figure")
    if module is None or not isinstance(value, getattr(module, "Figure", ())):
        return None
    picture = render(value)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot:
        pyplot.close(value)
    return picture


def render(figure):
    import io

    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight", facecolor=figure.get_facecolor())
    return base64(out.getvalue())


def show_figures(*ignored, **more):
    """plt.show(), and what happens at the end of a cell: every open figure with something on it is shown and closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            if figure.get_axes() or figure.lines or figure.patches or figure.texts or figure.images:
                show_values(({"image/png": render(figure), "text/plain": repr(figure)},), raw=True)
        finally:
            pyplot.close(figure)


# ---- Modules that are told to use all this ----


def adapt_module(module):
    if module.__name__ == "matplotlib.pyplot":
        module.show = show_figures
    elif module.__name__ == "IPython.display":
        module.display, module.update_display, module.DisplayHandle = display, update_display, DisplayHandle


class Shown:
    """Something whose representation is given: HTML("<b>x</b>"), Image(data=...)."""

    mime, binary = "text/plain", False

    def __init__(self, data=None, url=None, filename=None, **ignored):
        if filename is None and isinstance(data, str) and self.binary:
            data, filename = None, data
        if filename is not None:
            with open(filename, "rb" if self.binary else "r") as file:
                data = file.read()
        if data is None:
            raise ValueError("give data or filename: nothing is fetched from the network")
        self.data = data

    def _repr_mimebundle_(self, include=None, exclude=None):
        mime = self.mime
        if self.binary and bytes(self.data[:3]) == b"\xff\xd8\xff":
            mime = "image/jpeg"
        return {mime: self.data}


def ipython_spec(name, bootstrap):
    """A small IPython.display where IPython is not installed: notebooks and language models use it all the time."""
    if name not in ("IPython", "IPython.display"):
        return None

    class Loader:
        @staticmethod
        def create_module(spec):
            return None

        @staticmethod
        def exec_module(module):
            if name == "IPython":
                module.__path__ = []
                module.get_ipython = lambda: None
                module.display = __import__("IPython.display").display
                return
            kinds = {"HTML": "text/html", "Markdown": "text/markdown", "SVG": "image/svg+xml", "Latex": "text/latex", "Math": "text/latex"}
            kinds.update({"JSON": "application/json", "Javascript": "application/javascript", "Image": "image/png", "Pretty": "text/plain"})
            for kind, mime in kinds.items():
                setattr(module, kind, type(kind, (Shown,), {"mime": mime, "binary": kind == "Image", "__module__": name}))
            module.display, module.update_display, module.DisplayHandle = display, update_display, DisplayHandle
            module.clear_output = lambda wait=False: None

    return bootstrap.ModuleSpec(name, Loader, is_package=name == "IPython")
