// Package members is the page of the console that shows the members: what each is, how far it is, and how many may fail.
package members
