package server

import (
	"context"
	"log/slog"
	"slices"
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

// collect shows the same to who watches metrics.
func (w expiries) collect(e *metrics.Emitter) {
	for _, one := range w.all() {
		e.Gauge("quorate_tls_expiry_timestamp_seconds",
			"Until when the certificate, the first of its authorities or of the revocation lists is good, in Unix seconds.",
			float64(one.At.Unix()), "kind", string(one.Kind), "what", one.What)
	}
}
