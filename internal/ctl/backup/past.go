package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/undelete"
)

// Reader restores a state of a backup into a scratch directory, proves it, calls use with it, and drops it. The server is one.
type Reader func(ctx context.Context, b *snapshot.Backup, progress func(done, total int64),
	use func(undelete.Past, *snapshot.Proof) error) error

// Past opens former states of a continuous backup for a command that reads them.
type Past struct {
	source
	read    Reader
	flag    string // that names the place
	scratch string
	target  backup.Target
}

// NewPast returns a Past whose place is named by a flag.
func NewPast(s command.Streams, read Reader, flag string) *Past {
	return &Past{source: source{streams: s}, read: read, flag: flag}
}

// AddFlags adds the flags that say where the backup is, and where a state is restored to for a moment.
func (p *Past) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.url, p.flag, "", "read a state of the continuous backup at this place: "+
		"file:///DIRECTORY or s3://BUCKET/PREFIX?…")
	flags.StringVar(&p.cluster, "cluster", "", "the id of the cluster whose backup is meant, if the place has those of "+
		"several, or if it is not that of the cluster at --endpoints: a restored cluster has another id than the one before it")
	p.addIdentity(flags)
	p.addHistory(flags)
	flags.StringVar(&p.scratch, "scratch", "", "where the state is restored to for a moment (default the directory for "+
		"temporary files)")
}

// Given reports whether the command line names a place.
func (p *Past) Given() bool { return p.url != "" }

// URL is the place, as the command line names it.
func (p *Past) URL() string { return p.url }

// At takes the flag --at: the state that Use reads.
func (p *Past) At(at string) (err error) {
	p.target, err = target(at)
	return err
}

// Use calls use with the state. The status of an error of the backup is that of `quorate backup verify`; use returns its own.
func (p *Past) Use(ctx context.Context, use func(undelete.Past, *snapshot.Proof) error) error {
	if p.read == nil {
		return command.Refused(errors.New("this program restores nothing"))
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	defer p.store.Close()
	var used error
	err := p.read(ctx, &snapshot.Backup{Store: p.store, Catalog: p.catalog, Target: p.target, Place: p.source.at.String(),
		Scratch: p.scratch, Damaged: p.damaged, Open: p.reads}, p.shown(), func(
		past undelete.Past, proof *snapshot.Proof,
	) error {
		used = use(past, proof)
		return used
	})
	if used != nil {
		return used
	}
	if err != nil {
		return p.failed(ctx, err)
	}
	return nil
}

// ProofText says which state was read.
func ProofText(p *snapshot.Proof) string {
	return fmt.Sprintf("revision %d of the backup, written before %s", p.Revision, p.Time)
}
