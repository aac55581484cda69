package ctl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/wal"
)

func newLog(s command.Streams) *cobra.Command {
	dump := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print every record of the write-ahead log in a data directory, or in a --wal-dir",
		Long: "Print every record of the write-ahead log in a data directory, or in a --wal-dir. It opens nothing for " +
			"writing, and may look at the log of a running member, whose last lines may then be half written. The exit " +
			"status is 1 if the log is damaged.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			inside := filepath.Join(dir, "wal")
			switch _, err := os.Stat(inside); {
			case err == nil:
				dir = inside
			case !errors.Is(err, fs.ErrNotExist):
				return command.Refused(err)
			}
			if err := wal.Dump(s.Out, files.Disk, dir); err != nil {
				return command.Refused(err)
			}
			return nil
		},
	}
	return command.Group("log", "Look at a member's write-ahead log", dump)
}
