package backup_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

var rewrite = flag.Bool("rewrite", false, "write the objects of a form that has none yet")

// frozen is where the objects of the first form lie, under the last elements of their names. They are never made anew.
const frozen = "testdata/1"

func frozenSegment() *backup.Segment {
	return &backup.Segment{Cluster: 0xfedcba9876543210, Epoch: 2, Member: 7, Since: 1, Before: 0x1111, RevisionBefore: 8,
		Predecessor: backup.HashOf([]byte("before")), Items: []backup.Item{
			{Entry: consensus.Entry{Index: 90, Term: 3, Kind: consensus.EntryNoop}, Time: 1_790_000_000_000, Revision: 8,
				Sum: 0x2222},
			{Entry: consensus.Entry{Index: 91, Term: 3, Kind: consensus.EntryCommand, Payload: []byte("payload"), Proposer: 2,
				Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 9}, Sequence: 5}, Answered: 4,
				ExactRevision: 9}, Time: 1_790_000_000_250, Revision: 9, Sum: 0x3333},
		}}
}

func frozenManifest() *backup.Manifest {
	return &backup.Manifest{Cluster: 0xfedcba9876543210, Epoch: 2, Member: 7, Index: 89, Term: 3, Revision: 8, Since: 1,
		Sum: 0x1111, Level: 1, Build: "1.1.0", Time: 1_790_000_000_000,
		Files: []backup.File{{Name: "000005.sst", Size: 1234, Hash: backup.HashOf([]byte("table"))}}}
}

func frozenGap() *backup.Gap {
	return &backup.Gap{Cluster: 0xfedcba9876543210, Member: 7, After: 91, Until: 99, Time: 1_790_000_001_000,
		Reason: "a reason"}
}

// Objects that were written by the first build with this form are read as they were meant, for ever.
func TestFrozen(t *testing.T) {
	files, err := os.ReadDir(frozen)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite && len(files) == 0 {
		segment, packed := backup.NewPacker().Pack(frozenSegment())
		base, manifest := frozenManifest().Encode()
		gap, note := frozenGap().Encode()
		for name, content := range map[string][]byte{
			segment.String(): packed, base.String(): manifest, gap.String(): note,
		} {
			if err := os.WriteFile(filepath.Join(frozen, filepath.Base(name)), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(files) != 3 {
		t.Fatalf("%d objects, want 3", len(files))
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(frozen, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want, got, err := decoded(file.Name(), content)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", file.Name(), err, diff)
		}
	}
}

// decoded decodes an object by its name, and returns what it was made of, too.
func decoded(file string, content []byte) (want, got any, err error) {
	const dir = "/fedcba9876543210/"
	if name, err := backup.ParseSegment("log" + dir + file); err == nil {
		got, err := backup.Unpack(&name, content)
		return frozenSegment(), got, err
	}
	if name, err := backup.ParseBase("base" + dir + file); err == nil {
		want := frozenManifest()
		want.Version = 1
		got, err := backup.OpenManifest(&name, content, nil)
		return want, got, err
	}
	name, err := backup.ParseGap("gap" + dir + file)
	if err != nil {
		return nil, nil, err
	}
	note := frozenGap()
	note.Version = 1
	got, err = backup.OpenGap(&name, content, nil)
	return note, got, err
}
