package perform

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Performer performs operations of a ship.Shipper.
type Performer struct {
	Store objects.Store
	FS    env.FS
	Dir   string // of the checkpoint that is there
	// Lock encrypts the files of a checkpoint; nil: they are put in the clear.
	Lock *backup.Lock
	// Generation is that of the policy that is shipped by: a checkpoint of a state with another one is for other recipients,
	// perhaps, and fails.
	Generation uint64
	// Checkpoint makes a checkpoint of the store in a directory, which does not exist, and calls f with its state machine.
	Checkpoint func(ctx context.Context, dir string, f func(*apply.Machine) error) error
}

// Do performs an operation. Only one Checkpoint or Discard may run at a time, and no PutFile beside it.
func (p *Performer) Do(ctx context.Context, op *ship.Op) ship.Outcome {
	switch op.Kind {
	case ship.Put:
		if err := p.present(ctx, op.Needs); err != nil {
			return outcome(err)
		}
		return outcome(objects.PutOnce(ctx, p.Store, op.Name, bytes.NewReader(op.Content), int64(len(op.Content))))
	case ship.PutFile:
		return outcome(p.putFile(ctx, op.Name, &op.File))
	case ship.Prune:
		return ship.Outcome{Pruned: fetch.Prune(ctx, p.Store, op.Prune)}
	case ship.Checkpoint:
		made, err := p.checkpoint(ctx)
		o := outcome(err)
		o.Made = made
		return o
	}
	return outcome(p.FS.RemoveAll(p.Dir)) // Discard
}

var errMissing = errors.New("an object that was put is not at the place any more: it is put anew")

// present returns an errMissing unless the objects of files are at the place.
func (p *Performer) present(ctx context.Context, needed []ship.Needed) error {
	for i := range needed {
		info, err := p.Store.Stat(ctx, needed[i].Name)
		switch {
		case errors.Is(err, objects.ErrNotFound), err == nil && info.Size != needed[i].Size:
			return fmt.Errorf("%w: %s", errMissing, needed[i].Name)
		case err != nil:
			return err
		}
	}
	return nil
}

func outcome(err error) ship.Outcome {
	switch {
	case err == nil:
		return ship.Outcome{}
	case errors.Is(err, errMissing):
		return ship.Outcome{Result: ship.Missing, Why: err.Error()}
	case errors.Is(err, errChanged):
		return ship.Outcome{Result: ship.Changed, Why: err.Error()}
	case errors.Is(err, objects.ErrExists):
		return ship.Outcome{Result: ship.Taken, Why: err.Error()}
	}
	return ship.Outcome{Result: ship.Failed, Why: err.Error()}
}

func (p *Performer) checkpoint(ctx context.Context) (made *backup.Manifest, err error) {
	if err := p.FS.RemoveAll(p.Dir); err != nil {
		return nil, err
	}
	err = p.Checkpoint(ctx, p.Dir, func(m *apply.Machine) error {
		if m.Backup().Generation != p.Generation {
			return errPolicy
		}
		mark, position := m.Chain(), m.Applied()
		made = &backup.Manifest{Index: position.Index, Term: position.Term, Revision: m.Store().Revision(), Since: mark.Since,
			Sum: backup.Hex(mark.Sum), Level: m.ActiveLevel()}
		return nil
	})
	if err == nil {
		made.Files, err = p.sum(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.FS.RemoveAll(p.Dir))
	}
	return made, nil
}

var errPolicy = errors.New("the policy of the backup was set anew")

// sum lists the files of the checkpoint, with their sums, and their keys if they are encrypted.
func (p *Performer) sum(ctx context.Context) ([]backup.File, error) {
	names, err := p.FS.List(p.Dir)
	if err != nil {
		return nil, err
	}
	var files []backup.File
	for _, name := range names {
		path := p.FS.PathJoin(p.Dir, name)
		if info, err := p.FS.Stat(path); err != nil || info.IsDir() {
			return nil, errors.Join(err, fmt.Errorf("%s is no file of a checkpoint", path))
		}
		f := backup.File{Name: name}
		if f.Hash, f.Size, err = p.hash(ctx, path, nil); err != nil {
			return nil, err
		}
		if p.Lock != nil { // the object has another hash
			f.Key = p.Lock.Secret.FileKey(f.Hash)
			size := f.Size
			if f.Hash, f.Size, err = p.hash(ctx, path, f.Key); err != nil {
				return nil, err
			}
			if f.Size != size {
				return nil, errChanged
			}
		}
		files = append(files, f)
	}
	backup.SortFiles(files)
	return files, nil
}

// hash hashes a file, or what it becomes under a key.
func (p *Performer) hash(ctx context.Context, path string, key *backup.FileKey) (h backup.Hash, n int64, err error) {
	file, err := p.FS.OpenSequential(path)
	if err != nil {
		return h, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	var from io.Reader = readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return file.Read(b)
	})
	if key != nil {
		from = &cipher.StreamReader{S: key.Stream(0), R: from}
	}
	n, err = io.Copy(sum, from)
	sum.Sum(h[:0])
	return h, n, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (p *Performer) putFile(ctx context.Context, name string, f *backup.File) (err error) {
	file, err := p.FS.Open(p.FS.PathJoin(p.Dir, f.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	body := &summed{file: io.NewSectionReader(file, 0, f.Size), key: f.Key, want: f.Hash}
	return objects.PutOnce(ctx, p.Store, name, body, f.Size)
}

var errChanged = errors.New("a file of the checkpoint changed since it was summed")

// summed reads a file, or what it becomes under a key, which must have a hash: at its end it is known whether it does. A caller
// that begins again from another place than the beginning gets no such answer for that pass.
type summed struct {
	file   *io.SectionReader
	key    *backup.FileKey // nil: the file is put as it is
	want   backup.Hash
	sum    hash.Hash // nil: this pass did not begin at the beginning
	stream cipher.Stream
	at     int64
}

// Read implements io.Reader.
func (s *summed) Read(b []byte) (int, error) {
	if s.at == 0 {
		s.sum = sha256.New()
	}
	if s.key != nil && s.stream == nil {
		s.stream = s.key.Stream(s.at)
	}
	n, err := s.file.Read(b)
	s.at += int64(n)
	if s.key != nil {
		s.stream.XORKeyStream(b[:n], b[:n])
	}
	if s.sum == nil {
		return n, err
	}
	s.sum.Write(b[:n])
	if s.at == s.file.Size() && backup.Hash(s.sum.Sum(nil)) != s.want {
		return 0, errChanged
	}
	return n, err
}

// Seek implements io.Seeker.
func (s *summed) Seek(offset int64, whence int) (int64, error) {
	at, err := s.file.Seek(offset, whence)
	s.at, s.sum, s.stream = at, nil, nil
	return at, err
}
