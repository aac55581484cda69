package datadir

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// A boots file is read as it was written, or it is refused.
func FuzzParseBoots(f *testing.F) {
	var r bootsRecord
	f.Add(r.text())
	r.boots = 1 << 63
	f.Add(r.text() + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseBoots(text)
		if err == nil && r.text() != text {
			t.Errorf("%q is taken for %q", text, r.text())
		}
	})
}

// The small records in a data directory are JSON with a checksum. A damaged disk does not produce a valid checksum, but an
// operator's edit may.
func FuzzReadRecord(f *testing.F) {
	f.Add(`{"Storage":"01","Bindings":[{"Member":1}]}`)
	f.Add(`{"reason":4,"text":"x"}`)
	f.Add(`{"Epoch":{"Number":1},"Dropped":[{"ID":2,"PeerURLs":["http://a:1"]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		fs := filestest.NewMem()
		options := Options{FS: fs, Dir: "d"}
		if err := fs.MkdirAll("d", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{foundingFile, lostFile, droppedFile, addressesFile} {
			if err := durable.WriteSealed(fs, fs.PathJoin("d", name), text); err != nil {
				t.Fatal(err)
			}
		}
		if record, err := ReadFounding(options); err == nil {
			if err := WriteFounding(options, record); err != nil {
				t.Errorf("what was read is not written: %v", err)
			}
		}
		_ = CheckLost(options)
		_, _ = (&Data{Options: options}).Dropped()
		if told, err := ReadAddresses(options); err == nil {
			_ = Dialled(&consensus.Config{}, consensus.FoundingID(), told)
			if err := WriteAddresses(options, told); err != nil {
				t.Errorf("what was read is not written: %v", err)
			}
		}
	})
}
