package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/server/tracing"
)

// spans sends spans of the calls of clients, if that is asked for.
type spans struct {
	exporter *tracing.Exporter // nil: no calls are traced
	logger   *slog.Logger
}

func (s *spans) start(ctx context.Context, to *config.Tracing, logger *slog.Logger) (err error) {
	if !to.Enabled {
		return nil
	}
	s.logger = logger
	s.exporter, err = tracing.Start(ctx, tracing.Options{Address: to.Address, Service: to.Service, Instance: to.Instance,
		PerMillion: to.PerMillion, Logger: logger})
	if err == nil {
		logger.Info("distributed tracing setup enabled", "address", to.Address, "service-name", to.Service,
			"service-instance-id", to.Instance, "sampling-rate", to.PerMillion)
	}
	return err
}

// calls is what a server tells of its calls, so that they are traced; nil: they are not.
func (s *spans) calls() stats.Handler {
	if s.exporter == nil {
		return nil
	}
	return s.exporter.Calls()
}

// tracer records what happens inside of calls; nil: no calls are traced.
func (s *spans) tracer() gate.Tracer {
	if s.exporter == nil {
		return nil
	}
	return s.exporter
}

// stop sends the spans that wait, if the collector takes them within the time given.
func (s *spans) stop(within time.Duration) {
	if s.exporter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := s.exporter.Close(ctx); err != nil {
		s.logger.Warn("the last spans were not sent", "err", err)
	}
}

// dropped is the metric of spans for which there was no room.
func (s *spans) dropped() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_tracing_dropped_spans_total",
		Help: "Spans of calls that were dropped because 2048 waited for the collector.",
	}, func() float64 {
		if s.exporter == nil {
			return 0
		}
		return float64(s.exporter.Dropped())
	})
}

// failures is the metric of spans that were lost.
func (s *spans) failures() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_tracing_failures_total",
		Help: "How often spans of calls could not be sent to the collector: up to 512 were dropped each time.",
	}, func() float64 {
		if s.exporter == nil {
			return 0
		}
		return float64(s.exporter.Failed())
	})
}
