package snapshots

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// A snapshot that shows nothing new is given up, one that is still ahead is not, and one that was taken is not removed.
func TestReceiver_Discard(t *testing.T) {
	var r Receiver
	position := consensus.Position{Index: 10, Term: 2}
	if replaced := r.keep(position, "a"); replaced != "" {
		t.Errorf("nothing was there, yet %q was replaced", replaced)
	}
	if dir := r.useless(9); dir != "" {
		t.Errorf("%q is still ahead of index 9", dir)
	}
	if dir := r.useless(10); dir != "a" {
		t.Errorf("got %q, want the snapshot that shows nothing new", dir)
	}
	if _, ok := r.Take(position); ok {
		t.Error("a snapshot that was given up can be taken")
	}
	r.keep(position, "b")
	if dir, ok := r.Take(position); !ok || dir != "b" {
		t.Errorf("Take: got %q, %v", dir, ok)
	}
	if dir := r.useless(20); dir != "" {
		t.Errorf("%q is being installed", dir)
	}
}
