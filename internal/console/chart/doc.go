// Package chart draws figures of the console on the server, each with a table of the same numbers behind it.
//
// Lines shows series over time, Bar the parts of one whole, and Bars the parts of several at one scale. Lines and areas are
// SVG that stretches with the page; texts beside them keep their size. Colours are classes of the stylesheet, so that a
// figure follows the theme of the browser and can be printed.
//
// Invariants:
//  1. A figure is a pure function of its data: the same numbers give the same bytes.
//  2. Every text is escaped, and nothing has a style of its own: the policy of the console forbids it.
//  3. At most mostSeries series are drawn. The table has them all.
package chart
