// Package pages lists the pages of the console, in the order of the navigation. It is the only package of the console that
// knows all of them.
package pages
