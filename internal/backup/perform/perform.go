package perform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/quorate/quorate/internal/backup"
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
	// Checkpoint makes a checkpoint of the store in a directory, which does not exist, and calls f with its state machine.
	Checkpoint func(ctx context.Context, dir string, f func(*apply.Machine) error) error
}

// Do performs an operation. Only one Checkpoint or Discard may run at a time, and no PutFile beside it.
func (p *Performer) Do(ctx context.Context, op *ship.Op) ship.Outcome {
	switch op.Kind {
	case ship.Put:
		return outcome(objects.PutOnce(ctx, p.Store, op.Name, bytes.NewReader(op.Content), int64(len(op.Content))))
	case ship.PutFile:
		return outcome(p.putFile(ctx, &op.File))
	case ship.Checkpoint:
		made, err := p.checkpoint(ctx)
		o := outcome(err)
		o.Made = made
		return o
	}
	return outcome(p.FS.RemoveAll(p.Dir)) // Discard
}

func outcome(err error) ship.Outcome {
	switch {
	case err == nil:
		return ship.Outcome{}
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

// sum lists the files of the checkpoint, with their sums.
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
		sum := sha256.New()
		if f.Size, err = p.read(ctx, path, sum); err != nil {
			return nil, err
		}
		sum.Sum(f.Hash[:0])
		files = append(files, f)
	}
	backup.SortFiles(files)
	return files, nil
}

func (p *Performer) read(ctx context.Context, path string, to io.Writer) (n int64, err error) {
	file, err := p.FS.OpenSequential(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.Copy(to, readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return file.Read(b)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (p *Performer) putFile(ctx context.Context, f *backup.File) (err error) {
	file, err := p.FS.Open(p.FS.PathJoin(p.Dir, f.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	body := &summed{file: io.NewSectionReader(file, 0, f.Size), want: f.Hash}
	return objects.PutOnce(ctx, p.Store, backup.FileName(f.Hash), body, f.Size)
}

var errChanged = errors.New("a file of the checkpoint changed since it was summed")

// summed reads a file that must have a hash: at its end it is known whether it does. A caller that begins again from another
// place than the beginning gets no such answer for that pass.
type summed struct {
	file *io.SectionReader
	want backup.Hash
	sum  hash.Hash // nil: this pass did not begin at the beginning
	at   int64
}

// Read implements io.Reader.
func (s *summed) Read(b []byte) (int, error) {
	if s.at == 0 {
		s.sum = sha256.New()
	}
	n, err := s.file.Read(b)
	s.at += int64(n)
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
	s.at, s.sum = at, nil
	return at, err
}
