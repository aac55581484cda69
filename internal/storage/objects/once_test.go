package objects_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

func never() time.Time { return time.Time{} }

// doubtful is a place whose Put answers with an error, and which holds what a test says.
type doubtful struct {
	*objectstest.Place
	answer error
	get    error
}

// Put implements objects.Store.
func (d doubtful) Put(context.Context, string, io.ReadSeeker, int64) error { return d.answer }

// Get implements objects.Store.
func (d doubtful) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if d.get != nil {
		return nil, d.get
	}
	return d.Place.Get(ctx, name, offset, length)
}

// Ensure that the place is read back after each doubtful answer, and believed about what it has, not about what it said.
func TestPutOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer error
		has    string // empty is nothing
		get    error
		want   error
	}{
		{"lost, and there", objects.ErrUnreachable, "mine", nil, nil},
		{"lost, and not there", objects.ErrUnreachable, "", nil, objects.ErrUnreachable},
		{"lost, and others' there", objects.ErrUnreachable, "yours", nil, objects.ErrExists},
		{"lost, and not to be read", objects.ErrUnreachable, "mine", objects.ErrDenied, objects.ErrUnreachable},
		{"full, and there", objects.ErrFull, "mine", nil, nil},
		{"full", objects.ErrFull, "", nil, objects.ErrFull},
		{"taken by mine", objects.ErrExists, "mine", nil, nil},
		{"taken by others", objects.ErrExists, "yours", nil, objects.ErrExists},
		{"taken by a longer one", objects.ErrExists, "mine and more", nil, objects.ErrExists},
		{"taken by nothing", objects.ErrExists, "", nil, objects.ErrBusy},
		{"taken, and not to be read", objects.ErrExists, "mine", objects.ErrUnreachable, objects.ErrUnreachable},
		{"no name", objects.ErrName, "mine", nil, objects.ErrName},
	} {
		place := objectstest.NewPlace(1, never)
		if c.has != "" {
			if err := place.Put(t.Context(), "o", strings.NewReader(c.has), int64(len(c.has))); err != nil {
				t.Fatal(err)
			}
		}
		err := objects.PutOnce(t.Context(), doubtful{place, fmt.Errorf("x: %w", c.answer), c.get}, "o",
			strings.NewReader("mine"), 4)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// Ensure that bodies that lie about their size are no object that is the same.
func TestCompare_body(t *testing.T) {
	place := objectstest.NewPlace(1, never)
	if err := place.Put(t.Context(), "o", strings.NewReader("12345"), 5); err != nil {
		t.Fatal(err)
	}
	if same, err := objects.Compare(t.Context(), place, "o", strings.NewReader("1234"), 5); same || err == nil {
		t.Errorf("got %v, %v", same, err)
	}
	place.Flip("o", 3)
	if same, err := objects.Compare(t.Context(), place, "o", strings.NewReader("12345"), 5); same || err != nil {
		t.Errorf("with a bit that flipped: %v, %v", same, err)
	}
}
