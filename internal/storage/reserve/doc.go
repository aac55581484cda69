// Package reserve keeps room on the disks of a member: below the reserve, services that make files grow on a client's behalf
// are asked to refuse, so that log and store, which cannot, do not meet a full disk.
//
// The main type is Watch. It holds one bit, which any goroutine may read; Look asks the file system and belongs to one
// goroutine. It knows nothing of what is refused. A Claim is for a large file that a caller wants to make: it gets room only
// as far as all such files leave the reserve alone. Claims belong to their owners, of whom there may be many.
package reserve
