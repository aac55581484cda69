// Package backup has the commands `quorate backup`, `quorate restore` and `quorate snapshot diff`, and the past states that
// `quorate undelete` reads.
//
// start, stop and status are calls of the Backup service (job.go). check tries a place (check.go). The others read a place
// themselves: source.go finds it, and the cluster whose backup is meant. Package backup/fetch lists it; a function that is
// passed in restores, since the server is above this package.
package backup
