package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that a bundle gives back what was collected, and that no cut, no flipped byte and no other file passes for one.
func TestBundle(t *testing.T) {
	c := &quoratepb.Collected{AtMs: 1_800_000_000_000, Members: []*quoratepb.CollectedMember{
		{Id: 1 << 63, Name: "m1", Observation: &quoratepb.Observation{MemberId: 1 << 63, ClusterId: 5, Core: &quoratepb.ObservedCore{Leader: 9}}},
		{Id: 2, Name: "m2", Fault: "refused", FaultText: "connection refused"},
	}}
	path := filepath.Join(t.TempDir(), "b.tgz")
	if err := writeBundle(path, c); err != nil {
		t.Fatal(err)
	}
	got, err := readBundle(path)
	if err != nil || !proto.Equal(got, c) {
		t.Fatalf("got %v, %v", got, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(content []byte) error {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readBundle(path)
		return err
	}
	for n := range len(whole) / 2 { // behind that comes the verdict, which is not read
		if err := try(whole[:n]); err == nil || !strings.Contains(err.Error(), "is cut off") {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	accepted := 0
	for at := range whole {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		if try(flipped) == nil {
			got, _ := readBundle(path)
			if !proto.Equal(got, c) {
				t.Fatalf("byte %d flipped: another verdict", at)
			}
			accepted++ // in the header of gzip, or in the verdict
		}
	}
	if accepted > len(whole)*3/4 {
		t.Errorf("%d of %d flipped bytes are not noticed", accepted, len(whole))
	}
	if err := try([]byte("hello, this is text")); err == nil || !strings.Contains(err.Error(), "no bundle of") {
		t.Errorf("a text: %v", err)
	}
}
