package datadir_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Ensure that each small file has a number of its form; that what reads it takes a later number for a later build's, also where
// there is no other file; and that a file without a number, or with one below 1, is damage.
func TestSmallFiles_number(t *testing.T) {
	var data *datadir.Data
	for name, read := range map[string]func(datadir.Options) error{
		"peers":     func(datadir.Options) error { _, err := data.SeenPeers(); return err },
		"lost":      datadir.CheckLost,
		"founding":  func(o datadir.Options) error { _, err := datadir.ReadFounding(o); return err },
		"dropped":   func(datadir.Options) error { _, err := data.Dropped(); return err },
		"forced":    func(o datadir.Options) error { _, err := datadir.Forced(o, consensus.Epoch{}); return err },
		"addresses": func(o datadir.Options) error { _, err := datadir.ReadAddresses(o); return err },
		"restored":  func(o datadir.Options) error { _, err := datadir.ReadRestored(o); return err },
	} {
		options := datatest.Options()
		data = datatest.Create(t, options, 1)
		for text, want := range map[string]error{
			"quorate " + name + " 2\n{}\n": level.ErrLater, "quorate " + name + " 10\n{}\n": level.ErrLater,
			"{}\n": durable.ErrCorrupt, "quorate " + name + " 0\n{}\n": durable.ErrCorrupt, "quorate other 2\n{}\n": durable.ErrCorrupt,
			"quorate " + name + " 02\n{}\n": durable.ErrCorrupt, "": durable.ErrCorrupt,
		} {
			seal(t, options.FS, "data/"+name, text)
			if name == "restored" && text == "quorate restored 2\n{}\n" {
				want = nil // this build writes it, for contents that need a feature level
			}
			err := read(options)
			if !errors.Is(err, want) || errors.Is(err, datadir.ErrNewerBuild) != (want == level.ErrLater) {
				t.Errorf("%s with %q: %v", name, text, err)
			}
		}
		datatest.Close(t, data)
	}
}
