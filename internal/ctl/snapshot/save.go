package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
	"github.com/quorate/quorate/internal/storage/files"
)

func newSave(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "save FILE",
		Short: "Save the contents of a member to a file",
		Long: "Save the contents of a member to a file in the format of etcd, with all versions of all keys since the last " +
			"compaction, leases, users and roles.\n\nWhoever can read the file can read all keys, and the hashes of the " +
			"passwords. An older snapshot of that name is replaced once the new one is complete; any other file is refused.",
		Example: "  quorate snapshot save backup.db --endpoints 10.0.0.1:2379",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return save(cmd.Context(), c, args[0])
		},
	})
}

// save writes to a file beside the wanted one and renames it when it is complete, verified and on the disk:
// a file of the wanted name is always a whole snapshot. The transfer may take long; only its beginning is bounded.
func save(ctx context.Context, c *command.Connection, path string) error {
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if len(client.Endpoints()) > 1 {
		return command.Usagef("a snapshot is of one member: name one with --endpoints")
	}
	if err := checkTarget(path); err != nil {
		return command.Refused(err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	bounded, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	if _, err := client.Status(bounded, client.Endpoints()[0]); err != nil {
		return c.Explain(ctx, err, client.Endpoints())
	}
	stream, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return c.Explain(ctx, err, client.Endpoints())
	}
	defer stream.Snapshot.Close()
	size, err := writeWhole(path, &shown{Reader: stream.Snapshot, to: c.Streams})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return command.Refused(fmt.Errorf("save the snapshot: %w", err))
	}
	if c.JSON() {
		status, err := readStatus(ctx, path) // no server sends the revision beside the file
		if err != nil {
			return err
		}
		return command.PrintJSON(c.Streams.Out, map[string]any{"file": path, "size_bytes": size, "version": stream.Version,
			"revision": status.Revision})
	}
	_, err = fmt.Fprintf(c.Streams.Out, "saved %s, %s\n", path, progress.Size(size))
	return err
}

// checkTarget refuses to replace what is no snapshot.
func checkTarget(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s exists and is no file: choose another name", path)
	case info.Size() == 0:
		return nil
	}
	old, err := etcdbackup.Open(path)
	if err != nil {
		return fmt.Errorf("%s exists and is no snapshot; it was not replaced: choose another name", path)
	}
	sealed := old.Sealed()
	if err := old.Close(); err != nil {
		return err
	}
	if !sealed {
		return fmt.Errorf("%s exists and is the database of an etcd, not a snapshot; it was not replaced: choose another "+
			"name", path)
	}
	return nil
}

// shown is a transfer whose progress a person can see.
type shown struct {
	io.Reader
	to   command.Streams
	size int64
	last time.Time
}

func (r *shown) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.size += int64(n)
	if r.to.Terminal && (err != nil || time.Since(r.last) > time.Second) {
		r.last = time.Now()
		end := ""
		if err != nil {
			end = "\r\x1b[K"
		}
		fmt.Fprintf(r.to.Err, "\rreceived %s%s", progress.Size(r.size), end)
	}
	return n, err
}

func writeWhole(path string, content io.Reader) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	size, err = copyVerified(f, content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return size, durable.SyncDir(files.Disk, filepath.Dir(path))
}

var errTorn = errors.New("the checksum at its end does not match: the transfer was cut or damaged")

// copyVerified copies a snapshot and checks it against the SHA-256 of all before that ends it.
func copyVerified(dst io.Writer, src io.Reader) (int64, error) {
	hash := sha256.New()
	buffer := make([]byte, 64<<10)
	var tail []byte // the last bytes read, which may be the checksum
	var size int64
	for {
		n, err := src.Read(buffer)
		if n > 0 {
			size += int64(n)
			if _, err := dst.Write(buffer[:n]); err != nil {
				return 0, err
			}
			tail = append(tail, buffer[:n]...)
			if keep := len(tail) - sha256.Size; keep > 0 {
				hash.Write(tail[:keep])
				tail = append(tail[:0], tail[keep:]...)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if !bytes.Equal(tail, hash.Sum(nil)) {
		return 0, errTorn
	}
	return size, nil
}
