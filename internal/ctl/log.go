package ctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
)

// logDump is one run of `quorate log dump`.
type logDump struct {
	command.Streams
	dataDir string // empty: DIR, or one above it
	keys    keysource.Source
}

func newLog(s command.Streams) *cobra.Command {
	d := logDump{Streams: s}
	dump := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print every record of the write-ahead log in a data directory, or in a --wal-dir",
		Long: "Print every record of the write-ahead log in a data directory, or in a --wal-dir. It opens nothing for " +
			"writing, and may look at the log of a running member, whose last lines may then be half written. The exit " +
			"status is 1 if the log is damaged.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := d.run(c.Context(), args[0]); err != nil {
				return command.Refused(err)
			}
			return nil
		},
	}
	dump.Flags().StringVar(&d.dataDir, "data-dir", "", "the member's, if its log is encrypted and DIR is its --wal-dir")
	command.KeyFlags(dump.Flags(), &d.keys)
	return command.Group("log", "Look at a member's write-ahead log", dump)
}

func (d *logDump) run(ctx context.Context, dir string) error {
	ring, err := d.ring(ctx, dir)
	if err != nil {
		return err
	}
	inside := filepath.Join(dir, "wal")
	switch _, err := os.Stat(inside); {
	case err == nil:
		dir = inside
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	err = wal.Dump(d.Out, files.Disk, dir, ring)
	if errors.Is(err, atrest.ErrEncrypted) {
		err = fmt.Errorf("%w here: give --data-dir, the data directory of the member, and its key", err)
	}
	return err
}

// ring opens the ring of keys of the log in dir: that is in the data directory, of which dir is a part, or which is named.
func (d *logDump) ring(ctx context.Context, dir string) (*atrest.Ring, error) {
	places := []string{dir, filepath.Join(dir, ".."), filepath.Join(dir, "..", "..")}
	if d.dataDir != "" {
		places = []string{d.dataDir}
	}
	for _, place := range places {
		if ring, err := d.keys.Open(ctx, files.Disk, place); ring != nil || err != nil {
			return ring, err
		}
	}
	return nil, nil
}
