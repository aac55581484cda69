// Package player tells a player of the laboratory, which draws, what there is to draw: the choices, runs with all their
// frames, and the comparison of protocols, as JSON. A link names a run, and the moment that is shown.
//
// Everything that decides is in package lab: this package reads links and writes documents. It builds for WebAssembly, where
// a page in a browser is the player (package labweb), and natively, where quoratesim writes the same bytes.
//
// Invariants:
//  1. Equal questions give equal bytes, natively and in a browser.
//  2. A link is text that anybody may have written: it is checked before anything is played, a run that it names ends, and its
//     document is bounded.
package player
