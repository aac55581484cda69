package etcdutl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// The version of the release of etcd that these commands match, and those of its API and its storage.
const (
	version        = "3.7.3"
	apiVersion     = "3.7"
	storageVersion = "3.7"
)

var formats = []string{"simple", "json", "fields", "table"}

// New makes the commands. snapshot is the one that reads and restores snapshots.
func New(s command.Streams, snapshot *cobra.Command) *cobra.Command {
	return command.Group("etcdutl", "The commands of etcdutl, for snapshot files and data directories",
		snapshot, newHashKV(s), newDefrag(s), newMigrate(s), newVersion(s))
}

func newVersion(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of etcdutl that this one is as good as", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "etcdutl version: %s\nAPI version: %s\n", version, apiVersion)
			return err
		},
	}
}

func newHashKV(s command.Streams) *cobra.Command {
	var revision int64
	var format string
	c := &cobra.Command{
		Use:   "hashkv FILE",
		Short: "Print the hash of all keys with their history in a snapshot, or in the database of a stopped etcd",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hash, err := hashFile(cmd.Context(), args[0], kv.Revision(revision))
			if err != nil {
				return err
			}
			return printHash(s, format, &hash)
		},
	}
	c.Flags().Int64Var(&revision, "rev", 0, "hash the history up to this revision; 0: all of it")
	c.Flags().StringVarP(&format, "write-out", "w", formats[0], command.Alternatives(formats))
	return c
}

func hashFile(ctx context.Context, name string, revision kv.Revision) (etcdbackup.HashKV, error) {
	file, err := etcdbackup.Open(name)
	if err != nil {
		return etcdbackup.HashKV{}, command.Refused(err)
	}
	defer file.Close()
	// The checksum at the end of a snapshot is not looked at: etcd's own etcdutl writes to the files that it hashes.
	hash, err := file.HashKV(ctx, revision)
	switch {
	case ctx.Err() != nil:
		return hash, ctx.Err()
	case errors.Is(err, kv.ErrCompacted):
		return hash, command.Refused(fmt.Errorf("%s: revision %d has been compacted", name, revision))
	case errors.Is(err, kv.ErrFutureRevision):
		return hash, command.Refused(fmt.Errorf("%s ends before revision %d", name, revision))
	case err != nil:
		return hash, command.Refused(fmt.Errorf("%s: %w", name, err))
	}
	return hash, nil
}

func printHash(s command.Streams, format string, h *etcdbackup.HashKV) error {
	switch format {
	case "json":
		return command.PrintJSON(s.Out, h)
	case "simple":
		_, err := fmt.Fprintf(s.Out, "%d, %d, %d\n", h.Hash, h.HashRevision, h.CompactRevision)
		return err
	case "fields":
		_, err := fmt.Fprintf(s.Out, "\"Hash\" : %d\n\"Hash revision\" : %d\n\"Compact revision\" : %d\n",
			h.Hash, h.HashRevision, h.CompactRevision)
		return err
	case "table":
		var t command.Table
		t.Add("HASH", "HASH REVISION", "COMPACT REVISION")
		t.Add(fmt.Sprint(h.Hash), fmt.Sprint(h.HashRevision), fmt.Sprint(h.CompactRevision))
		t.Print(s.Out)
		return nil
	}
	return command.Usagef("--write-out %q: choose %s", format, command.Alternatives(formats))
}

func newDefrag(s command.Streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "defrag --data-dir DIR",
		Short: "Say why a data directory needs no defragmentation",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := ours(dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(s.Err, "%s needs no defragmentation: its store gives space back while the member runs, and "+
				"`quorate defrag` asks a running member to do so now\n", dir)
			return err
		},
	}
	c.Flags().StringVar(&dir, "data-dir", "", "data directory of a member")
	return c
}

func newMigrate(s command.Streams) *cobra.Command {
	var dir, target string
	var force bool
	c := &cobra.Command{
		Use:   "migrate --data-dir DIR --target-version X.Y",
		Short: "Say whether a data directory is of a version of etcd's storage",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := ours(dir); err != nil {
				return err
			}
			if target != storageVersion || force {
				return command.Refused(fmt.Errorf("%s is no directory of etcd's, and has no version of etcd's. To go to "+
					"etcd, save a snapshot of the running cluster with `quorate snapshot save`, begin a cluster of etcd with "+
					"it, and migrate that", dir))
			}
			_, err := fmt.Fprintf(s.Err, "storage version up-to-date: snapshots of this cluster are of version %s\n",
				storageVersion)
			return err
		},
	}
	c.Flags().StringVar(&dir, "data-dir", "", "data directory of a member")
	c.Flags().StringVar(&target, "target-version", "", "version of etcd's storage, such as "+storageVersion)
	c.Flags().BoolVar(&force, "force", false, "refused: nothing can be forced here")
	return c
}

// ours is an error unless there is a data directory of this store.
func ours(dir string) error {
	if dir == "" {
		return command.Usagef("--data-dir is missing: name the data directory of a member")
	}
	if _, err := os.Stat(dir); err != nil {
		return command.Refused(errors.New(strings.TrimPrefix(err.Error(), "stat ")))
	}
	if _, err := os.Stat(filepath.Join(dir, "member", "snap", "db")); err == nil {
		return command.Refused(fmt.Errorf("%s is a data directory of etcd: use etcd's own etcdutl, or make it one of Quorate "+
			"with `quorate snapshot restore`", dir))
	}
	if _, err := os.Stat(filepath.Join(dir, "member", "stores", "CURRENT")); err != nil {
		return command.Refused(fmt.Errorf("%s is no data directory: it has no store", dir))
	}
	return nil
}
