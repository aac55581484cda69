package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Bounds of a name, in bytes. Those of an element are the least that file systems allow, with room for a suffix.
const (
	MaxName    = 512
	MaxElement = 200
)

// MaxList is the most objects that a List may ask for.
const MaxList = 1000

// Errors that callers tell apart. An error of a store wraps at most one of them, and the words of the place.
var (
	// ErrNotFound means that the place answered that it has no object of this name.
	ErrNotFound = errors.New("there is no such object")
	// ErrExists means that the name is taken, perhaps by an earlier attempt whose answer was lost.
	ErrExists = errors.New("an object of this name is there already")
	// ErrName means that a name, a prefix or a limit is none that the port allows: the caller has a defect.
	ErrName = errors.New("this is no name of an object")
	// ErrDamaged means that the object at the place is not the one that was written: other bytes, or another size.
	ErrDamaged = errors.New("the object does not hold what was written")

	// ErrBusy means that the place asks for less haste, or has a fault that it takes for a passing one.
	ErrBusy = errors.New("the place is busy, or has a passing fault")
	// ErrUnreachable means that no answer came: no connection, none in time, or one that broke off. The work may have been
	// done.
	ErrUnreachable = errors.New("the place cannot be reached")

	// ErrFull means that the place has no room left.
	ErrFull = errors.New("the place is full")
	// ErrDenied means that the place knows the credentials, and that they may not do this.
	ErrDenied = errors.New("the credentials may not do this here")
	// ErrUser means that the user of this process may not do this in a directory.
	ErrUser = errors.New("this user may not do that in the directory")
	// ErrReadOnly means that the file system of a directory takes no writes.
	ErrReadOnly = errors.New("the file system of the place is read-only")
	// ErrCredentials means that the place does not know the credentials, or that their signature is wrong.
	ErrCredentials = errors.New("the place does not accept the credentials")
	// ErrNoPlace means that the directory or the bucket is not there.
	ErrNoPlace = errors.New("the directory or bucket is not there")
	// ErrLink means that the place has a link, a pipe or a device where it should have a directory of its own.
	ErrLink = errors.New("the place leads elsewhere")
	// ErrForeign means that the place has something under the name that is no object, such as a link, a pipe or a device.
	ErrForeign = errors.New("the place has something else there than an object")
	// ErrRegion means that the bucket is in another region.
	ErrRegion = errors.New("the bucket is in another region")
	// ErrClock means that the place refuses a request because the clocks differ by too much.
	ErrClock = errors.New("the clock differs too much from that of the place")
	// ErrNotAllowed means that the operator of this process does not let it use the place: nothing was asked of it.
	ErrNotAllowed = errors.New("this member may not use the place")
	// ErrTLS means that the certificate of the place is not for its name, or of no known authority.
	ErrTLS = errors.New("the certificate of the place is not accepted")
	// ErrNoTLS means that the server answers, and not by TLS.
	ErrNoTLS = errors.New("the server does not speak TLS at this port")
)

// Passing reports whether the same operation may succeed later without anybody's help.
func Passing(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, ErrUnreachable)
}

// Info is what a place says of an object.
type Info struct {
	Name string
	Size int64     // bytes
	Time time.Time // when the place took it, by the place's clock
}

// Store holds objects under names (CheckName). An object never changes once it is there, and no name is a directory of another
// ("a" and "a/b"). All methods may be called at once. They end with the context, and hold no more memory than the
// implementation's bound.
type Store interface {
	// Put stores size bytes of the body, which it may read several times from its beginning, under a name that nothing had. It
	// returns ErrExists if the name is taken, perhaps by an earlier attempt of the same caller: the caller compares (PutOnce).
	// Any other error says nothing about whether the object is there. An object is there whole or not at all, and after nil it
	// outlives a power loss of the place, as far as the place promises that.
	Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error
	// Get reads an object from an offset, length bytes or, if length is negative, to its end. A range may begin or end behind
	// the end of the object: what is there is the body, which may be empty. A body that the place cuts ends in an error, not in
	// io.EOF. ErrNotFound. The caller closes the body.
	Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Stat returns size and time of an object. ErrNotFound.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns the first objects, at most limit (1 to MaxList), whose names begin with prefix and come after the name
	// after, in the order of the names' bytes, and whether there are more. A prefix need not end at an element. A place may be
	// late: it may omit what was just written, and name what was just deleted.
	List(ctx context.Context, prefix, after string, limit int) (found []Info, more bool, err error)
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// CheckName returns ErrName unless a name consists of elements of [a-z0-9._-] with '/' between them, none of which begins with
// a dot, within MaxName and MaxElement.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("%w: it has %d bytes, of 1 to %d", ErrName, len(name), MaxName)
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element[0] == '.' || len(element) > MaxElement {
			return fmt.Errorf("%w: %q has an element that is empty, too long, or begins with a dot", ErrName, name)
		}
	}
	return checkBytes(name)
}

// CheckList returns ErrName unless List allows the prefix, the name to begin after, and the limit.
func CheckList(prefix, after string, limit int) error {
	if limit < 1 || limit > MaxList || len(prefix) > MaxName || len(after) > MaxName {
		return fmt.Errorf("%w: a list of %d objects, of 1 to %d, or a name that is too long", ErrName, limit, MaxList)
	}
	return errors.Join(checkBytes(prefix), checkBytes(after))
}

func checkBytes(name string) error {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/", rune(c)) {
			return fmt.Errorf("%w: %q has other characters than a-z, 0-9, '.', '_', '-' and '/'", ErrName, name)
		}
	}
	return nil
}

// CheckSize returns an error unless a body may have so many bytes.
func CheckSize(size int64) error {
	if size < 0 || size > MaxSize {
		return fmt.Errorf("%w: an object of %d bytes, of 0 to %d", ErrName, size, int64(MaxSize))
	}
	return nil
}

// MaxSize is the most bytes that an object may have: what S3 takes in 10,000 parts of 8 MiB.
const MaxSize = 10000 * 8 << 20
