package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/reserve"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// disk is the file system that a data directory is read and written through: if the directory has a ring of keys, fs encrypts
// all files, but for the log, which lies on below and seals its records itself.
type disk struct {
	fs, below env.FS
	keys      *atrest.Ring // nil: not encrypted
}

// plainDisk is one whose files are what they hold.
func plainDisk(fs env.FS) disk { return disk{fs: fs, below: fs} }

func encryptedDisk(below env.FS, keys *atrest.Ring) disk {
	return disk{fs: atrest.NewFS(below, keys), below: below, keys: keys}
}

// openDisk opens the ring of a data directory, if it has one. It changes nothing.
func openDisk(ctx context.Context, below env.FS, dataDir string, source keysource.Source) (disk, error) {
	keys, err := source.Open(ctx, below, dataDir)
	if err != nil || keys == nil {
		return plainDisk(below), err
	}
	return encryptedDisk(below, keys), nil
}

// lay makes options use the disk.
func (d *disk) lay(o *datadir.Options) {
	o.FS, o.Below, o.Keys = d.fs, d.below, d.keys
}

func sourceOf(e *config.Encryption) keysource.Source {
	return keysource.Source{KeyFile: e.KeyFile, KMS: e.KMS}
}

// openKeys opens the ring of the data directory, before anything else in it is read. Whether the flags fit to what is there is
// judged now; a ring is made once the directory is locked.
func (s *Server) openKeys(ctx context.Context, _ Options) (err error) {
	if s.cfg.Encryption.On() {
		hideMemory(s.logger)
	}
	if s.disk, err = openDisk(ctx, s.disk.below, s.cfg.Storage.DataDir, sourceOf(&s.cfg.Encryption)); err != nil {
		return err
	}
	if s.disk.keys == nil && s.cfg.Encryption.On() {
		return s.refusePlain()
	}
	return nil
}

// lockKeys makes the ring of a directory that is empty, and opens it again if another process changed it before this one had
// the lock.
func (s *Server) lockKeys(ctx context.Context, _ Options) error {
	if !s.cfg.Encryption.On() {
		return nil
	}
	if s.disk.keys != nil {
		if current, err := s.disk.keys.IsCurrent(); current || err != nil {
			return err
		}
	}
	if err := s.openKeys(ctx, Options{}); err != nil || s.disk.keys != nil {
		return err
	}
	disk, err := createRing(ctx, s.disk.below, s.cfg.Storage.DataDir, &s.cfg.Encryption)
	if err == nil {
		s.disk = disk
		s.logger.Info("made a ring of keys: the data directory is encrypted from now on", "key", disk.keys.Active().ID.String())
	}
	return err
}

// createRing makes the ring of a directory that is locked and holds no data.
func createRing(ctx context.Context, below env.FS, dataDir string, e *config.Encryption) (disk, error) {
	keys, err := sourceOf(e).Create(ctx, below, dataDir, time.Now())
	if err != nil {
		return disk{}, fmt.Errorf("--data-dir %s: %w", dataDir, err)
	}
	return encryptedDisk(below, keys), nil
}

// refusePlain refuses to encrypt a directory that has data already: they would stay on the disk as they are.
func (s *Server) refusePlain() error {
	dir := s.cfg.Storage.DataDir
	member := filepath.Join(dir, memberDir)
	for _, place := range []string{member, member + ".partial", s.cfg.Storage.WALDir} {
		if place == "" {
			continue
		}
		names, err := s.disk.below.List(place)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("--data-dir %s: look for data: %w", dir, bare(err))
		}
		if place == s.cfg.Storage.WALDir {
			names = onlyLogs(names)
		}
		for _, name := range names {
			if err := atrest.CheckPlain(s.disk.below, filepath.Join(place, name)); err != nil {
				return err
			}
		}
		if len(names) > 0 {
			return fmt.Errorf("--data-dir %s holds data that are not encrypted (%s), and no %s: they can not become encrypted "+
				"where they are. Start without --encryption-key-file and --encryption-kms; or, if the others serve, %s: it "+
				"gets the data from them. Nothing was changed", dir, filepath.Join(place, names[0]), atrest.RingFile,
				s.cfg.StartOver(""))
		}
	}
	return nil
}

// scratchName is the directory of a member in --encryption-scratch-dir, which several may share.
const scratchName = "quorate-backups-"

// backupPlace returns where backups are built before they are sent, and the room there. They are in the clear, so of an
// encrypted member that is no directory of its data, and may be none. The next start removes files that a killed process left.
func (s *Server) backupPlace() (dir string, room *reserve.Watch, err error) {
	if s.disk.keys == nil {
		dir = filepath.Join(s.cfg.Storage.DataDir, memberDir, snapshot.WorkDir) // emptied at each start
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("--data-dir %s: %w", s.cfg.Storage.DataDir, bare(err))
		}
		return dir, s.reserve, nil
	}
	scratch := s.cfg.Encryption.ScratchDir
	if scratch == "" {
		return "", s.reserve, nil
	}
	dir = filepath.Join(scratch, scratchName+s.data.Identity.Storage.String())
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", nil, fmt.Errorf("--encryption-scratch-dir %s: %w", scratch, bare(err))
	}
	return dir, reserve.New(files.Disk, 0, dir), nil
}

// onlyLogs leaves the names of what a log consists of.
func onlyLogs(names []string) (logs []string) {
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") || strings.HasSuffix(name, ".spare") {
			logs = append(logs, name)
		}
	}
	return logs
}
