// Package chart draws figures of the console as SVG, on the server, each with a table of the same numbers behind it.
//
// A figure is a pure function of its data: the same numbers give the same bytes. Its colours are classes of the stylesheet.
package chart
