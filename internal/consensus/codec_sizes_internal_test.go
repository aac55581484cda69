package consensus

import (
	"reflect"
	"testing"
)

// Ensure that the room that is taken for elements of lists is what they take, whatever fields they get.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		of   any
		size int
	}{
		{MemberID(0), idSize}, {"", textSize}, {Member{}, memberSize}, {ChangeStep{}, stepSize}, {Entry{}, entrySize},
		{Proposal{}, proposalSize}, {Refusal{}, refusalSize}, {ReadIndex{}, readSize}, {Record{}, recordSize},
		{Verdict{}, verdictSize}, {Message{}, MessageSize},
	} {
		if got := int(reflect.TypeOf(c.of).Size()); got != c.size {
			t.Errorf("a %T takes %d bytes, and %d are counted", c.of, got, c.size)
		}
	}
}
