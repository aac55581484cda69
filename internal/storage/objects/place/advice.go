package place

import (
	"errors"

	"github.com/quorate/quorate/internal/storage/objects"
)

// advice is what an operator can do about each kind of error.
var advice = []struct {
	kind     error
	sentence string
}{
	{objects.ErrCredentials, "Check the key: it may be mistyped, revoked or expired, or be of another server."},
	{objects.ErrDenied, "Let this user list the bucket, and read, write and delete its objects (s3:ListBucket, s3:GetObject, " +
		"s3:PutObject, s3:DeleteObject)."},
	{objects.ErrUser, "Run this as the user that members run as. If members themselves are refused, let that user write " +
		"to the directory, and give it what is in base, log, gap, kept, obj, probe and .tmp below, and nothing else."},
	{objects.ErrReadOnly, "Mount it for writing, or choose another directory."},
	{objects.ErrNoPlace, "Make the directory or bucket, mount the disk, or correct the URL, its endpoint too."},
	{objects.ErrLink, "Remove it, and see who else can write to the directory of the place."},
	{objects.ErrForeign, "Remove it, and see who else can write to the directory of the place."},
	{objects.ErrRegion, "Add region=REGION to the URL, with the region of the bucket."},
	{objects.ErrClock, "Set the clock of this machine, and let NTP keep it right."},
	{objects.ErrTLS,
		"Name the authority of the server's certificate by ca=FILE, and the server by a name that the certificate has."},
	{objects.ErrNoTLS, "Correct the port; or write endpoint=http://… if all networks on the way are trusted."},
	{objects.ErrFull, "Make room at the place, or raise its quota."},
	{objects.ErrUnreachable, "Check the endpoint, its name in DNS, and the firewalls on the way."},
	{objects.ErrNotAllowed, "Which places may be used is said by the flag --backup-places of each member."},
	{objects.ErrBusy, "Try again later; if it stays so, look at the server."},
	{objects.ErrDamaged, "Look at the server: it gives other bytes than it was given."},
}

// Advice says what to do about an error of a place, in one sentence; it is empty if nothing is known.
func Advice(err error) string {
	for _, row := range advice {
		if errors.Is(err, row.kind) {
			return row.sentence
		}
	}
	return ""
}
