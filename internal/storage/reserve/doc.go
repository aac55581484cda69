// Package reserve keeps room on the disks of a member: below the reserve, whoever makes files grow on a client's behalf is
// asked to refuse, so that log and store, which cannot, do not meet a full disk.
//
// The main type is Watch. It holds one bit, which any goroutine may read; Look asks the file system and belongs to one
// goroutine. It knows nothing of what is refused.
package reserve
