// Package fetch reads a backup from a place: which clusters it has, their catalogs, and objects, whose bytes it compares with
// their names.
//
// Nothing here writes. All functions may be called at once. A place that does not answer is an error of package objects; an
// object that is missing, or not what its name says, is a DamageError, after a second try.
package fetch
