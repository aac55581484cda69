package member

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// A snapshot that the log has outrun is given up, one that is still ahead is not, and one that is being installed is
// nobody's to remove.
func TestReceivedSnapshots_outrun(t *testing.T) {
	var r receivedSnapshots
	mark := consensus.Mark{Index: 10, Term: 2}
	if replaced := r.keep(mark, "a"); replaced != "" {
		t.Errorf("nothing was there, yet %q was replaced", replaced)
	}
	if dir := r.outrun(9); dir != "" {
		t.Errorf("%q is still ahead of index 9", dir)
	}
	if dir := r.outrun(10); dir != "a" {
		t.Errorf("got %q, want the snapshot that shows nothing new", dir)
	}
	if _, ok := r.claim(mark); ok {
		t.Error("a snapshot that was given up can be claimed")
	}
	r.keep(mark, "b")
	if dir, ok := r.claim(mark); !ok || dir != "b" {
		t.Errorf("claim: got %q, %v", dir, ok)
	}
	if dir := r.outrun(20); dir != "" {
		t.Errorf("%q is being installed", dir)
	}
}
