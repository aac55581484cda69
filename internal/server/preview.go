package server

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/server/certs"
)

// Bound is a setting and the bytes that a member uses for it.
type Bound struct {
	Setting string
	Bytes   int64
}

// Bounds returns what a member with these shares of memory uses for the settings that --memory may cut. The error is that of a
// start.
func Bounds(cfg *config.Config, shares memory.Shares) ([]Bound, error) {
	b, err := newBudgets(cfg, shares)
	if err != nil {
		return nil, err
	}
	return []Bound{
		{"snapshot-log-bytes", b.Log.Snapshot}, {"max-response-bytes", b.Answer}, {"response-memory-bytes", b.Answers},
	}, nil
}

// FileFaults reads the files of certificates and keys that a configuration names, as a start does, and returns what is wrong
// with them at a time. It makes none.
func FileFaults(cfg *config.Config, now time.Time) (faults []error) {
	quiet := slog.New(slog.DiscardHandler)
	for _, kind := range []certs.Kind{certs.Client, certs.Peer} {
		files := &cfg.TLS.Client
		if kind == certs.Peer {
			files = &cfg.TLS.Peer
		} else if !servesTLS(cfg) {
			continue // a start does not read them
		}
		if files.SelfSigned() {
			continue
		}
		keeper, err := certs.Open(kind, cfg, quiet)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, e := range keeper.Expiries() {
			if !e.At.After(now) {
				faults = append(faults, fmt.Errorf("the %s for %ss ended on %s", e.What, e.Kind,
					e.At.UTC().Format(time.DateTime)))
			}
		}
	}
	if _, err := openLogin(cfg, 0, quiet); err != nil {
		faults = append(faults, err)
	}
	return faults
}
