// The home page is README.md: its first lines become what a visitor sees first.
export function homePage(md) {
  void md
}
