package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/server/certs"
)

// expiryPause is how often certificates that expire soon are warned of.
const expiryPause = 24 * time.Hour

// expiries knows until when certificates, authorities and revocation lists are good.
type expiries struct {
	clients, peers *certs.Keeper
	logger         *slog.Logger
}

func (w expiries) all() []certs.Expiry {
	return slices.Concat(w.clients.Expiries(), w.peers.Expiries())
}

// watch warns each day of what expires soon.
func (w expiries) watch(ctx context.Context) {
	ticker := time.NewTicker(expiryPause)
	defer ticker.Stop()
	for {
		w.warn(time.Now())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w expiries) warn(now time.Time) {
	for _, e := range w.all() {
		if e.Due(now) {
			w.logger.Warn("a TLS file must be replaced soon", "kind", string(e.Kind), "what", e.What,
				"expires", e.At.UTC().Format(time.RFC3339), "left", e.At.Sub(now).Round(time.Minute).String())
		}
	}
}

// late says in a sentence what expires soon, or has expired, and was not replaced while there was time.
func (w expiries) late(member string, now time.Time) (texts []string) {
	for _, e := range w.all() {
		if !e.Late(now) {
			continue
		}
		when := "expires in " + days(e.At.Sub(now))
		if !e.At.After(now) {
			when = "expired " + days(now.Sub(e.At)) + " ago"
		}
		what := strings.ReplaceAll(e.What, "-", " ")
		texts = append(texts, fmt.Sprintf("%s of %s for %ss %s, at %s: put a new one in the place of its file, which is read "+
			"again by itself; see docs/security.md", what, member, e.Kind, when, e.At.UTC().Format(time.RFC3339)))
	}
	return texts
}

// days is a time in the unit that people plan in.
func days(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", d/time.Second)
	}
	if d < 2*time.Hour {
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	if d < 48*time.Hour {
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// collect shows the same as metrics.
func (w expiries) collect(e *metrics.Emitter) {
	for _, one := range w.all() {
		e.Gauge("quorate_tls_expiry_timestamp_seconds",
			"Until when the certificate, the first of its authorities or of the revocation lists is good, in Unix seconds.",
			float64(one.At.Unix()), "kind", string(one.Kind), "what", one.What)
	}
}
