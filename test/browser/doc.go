// Package browser looks at the console as people do, in Chromium: each page in light, in dark and on a narrow screen, by
// keyboard, with scripts off, with texts that attack it, and while members die. It is a module of its own for what it needs.
//
// Chromium and axe-core are not part of the repository: `make browser` fetches both, or set QUORATE_BROWSER to the program and
// QUORATE_AXE to axe.min.js.
package browser
