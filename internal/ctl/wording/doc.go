// Package wording says in words what the membership API tells of configurations, plans and jobs, and finds what people mean by
// their words, so that the command line and the console say the same.
//
// It does no I/O and has no clock. Texts of members are returned as members said them: the caller drops what must not be
// printed.
//
// All functions may be called concurrently.
package wording
