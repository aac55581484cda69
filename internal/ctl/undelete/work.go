package undelete

import (
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/undelete"
)

// work is one command line.
type work struct {
	*command.Connection
	prefix      string
	atText      string
	at          int64
	when        time.Time                   // that atText is; zero: it is a revision
	told        *quoratepb.RevisionAtAnswer // of when
	exact       bool
	leased      bool
	from        string
	limit, rows int
	yes, dryRun bool

	past *backup.Past
	of   *snapshot.Proof // the state of the backup that is read; nil: the cluster's history is
}

const (
	defaultKeys = 10_000
	defaultRows = 50
)

// check refuses command lines that make no sense.
func (w *work) check(atGiven bool, now time.Time) (err error) {
	switch {
	case w.past.Given() && !atGiven:
		return command.Usagef("--from-backup: say which state with --at: latest, a time such as 2026-11-30T12:00:00Z, " +
			"a revision, or entry:INDEX")
	case w.past.Given():
		if err = w.past.At(w.atText); err != nil {
			return err
		}
	case atGiven:
		if w.at, w.when, err = command.RevisionOrTime(w.atText, now); err != nil {
			return command.Usagef("--at: %w; without --at each key gets the value that its deletion took", err)
		}
	}
	switch {
	case w.limit < 1 || w.limit > undelete.MostKeys:
		return command.Usagef("--limit %d: choose 1 to %d", w.limit, undelete.MostKeys)
	case w.rows < 0:
		return command.Usagef("--rows %d: give how many keys to print", w.rows)
	case w.exact && w.prefix == "":
		return command.Usagef("--exact needs a key; without it, '' means all keys")
	case w.exact && w.from != "":
		return command.Usagef("--exact and --from exclude each other")
	case !w.yes && !w.dryRun && !w.Streams.Attended:
		return command.Usagef("there is no terminal to ask on: add --yes, or --dry-run to see the plan")
	}
	return nil
}

// request is what the plan is asked for.
func (w *work) request() undelete.Request {
	r := undelete.Request{Key: []byte(w.prefix), At: w.at, From: []byte(w.from), Limit: w.limit,
		Leased: w.leased || w.exact}
	if !w.exact {
		r.Key, r.End = undelete.Prefix([]byte(w.prefix))
	}
	return r
}

// none says of the key that it is not what was looked for, or that no key is.
func (w *work) none(isNot, is string) string {
	switch {
	case w.exact:
		return "the key " + wording.Key([]byte(w.prefix)) + " " + isNot
	case w.prefix == "":
		return "no key " + is
	}
	return "no key that begins with " + shown([]byte(w.prefix)) + " " + is
}

// shown is a key as a person reads it: quoted unless it is plain text.
func shown(key []byte) string { return wording.Key(key) }
