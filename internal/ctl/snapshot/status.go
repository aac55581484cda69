package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

var statusFormats = []string{"table", "json", "simple"}

func newStatus(s command.Streams) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "status FILE",
		Short: "Check a snapshot, and show its revision and size",
		Long: "Read a snapshot, or the database of a stopped etcd, as a whole and print what it holds. The hash is that of " +
			"`etcdutl snapshot status`. A file that is cut or damaged is refused.",
		Example: "  quorate snapshot status backup.db\n  quorate snapshot status backup.db -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := readStatus(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printStatus(s, format, &status)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", statusFormats[0], command.Alternatives(statusFormats))
	c.Flags().StringVarP(&format, "write-out", "w", statusFormats[0], "the same, as etcdutl calls it")
	_ = c.Flags().MarkHidden("write-out") // fails for unknown flags only
	return c
}

func readStatus(ctx context.Context, name string) (etcdbackup.Status, error) {
	file, err := etcdbackup.Open(name)
	if err != nil {
		return etcdbackup.Status{}, refusedFile(err)
	}
	defer file.Close()
	if err := file.Verify(ctx); err != nil && !errors.Is(err, etcdbackup.ErrNoHash) {
		return etcdbackup.Status{}, refusedFile(fmt.Errorf("%s: %w", name, err))
	}
	status, err := file.Status(ctx)
	switch {
	case ctx.Err() != nil:
		return status, ctx.Err()
	case err != nil:
		return status, refusedFile(fmt.Errorf("%s: %w", name, err))
	}
	return status, nil
}

// refusedFile says what is wrong with a file, without the name of the call that failed.
func refusedFile(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return command.Refused(err)
}

func printStatus(s command.Streams, format string, status *etcdbackup.Status) error {
	hash, revision := fmt.Sprintf("%x", status.Hash), strconv.FormatInt(status.Revision, 10)
	keys, size := strconv.Itoa(status.TotalKey), progress.Size(status.TotalSize)
	switch format {
	case "json":
		return command.PrintJSON(s.Out, status)
	case "simple":
		_, err := fmt.Fprintf(s.Out, "%s, %s, %s, %s, %s\n", hash, revision, keys, size, status.Version)
		return err
	case "table":
		var t command.Table
		t.Add("HASH", "REVISION", "KEYS", "SIZE", "VERSION")
		t.Add(hash, revision, keys, size, status.Version)
		t.Print(s.Out)
		return nil
	}
	return command.Usagef("--output %q: choose %s", format, command.Alternatives(statusFormats))
}
