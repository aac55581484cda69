package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// The outputs of records that are no files.
const (
	outputJournal = "journal"
	outputSyslog  = "syslog"
)

// openAudit opens the outputs of records, before the member serves anybody: one that cannot be written to is told at the start.
func (s *Server) openAudit(context.Context, Options) error {
	flags := &s.cfg.Audit
	if len(flags.BestEffort)+len(flags.Required) == 0 {
		return nil
	}
	rotation, err := s.cfg.AuditRotation()
	if err != nil {
		return err
	}
	options := trail.Options{Member: uint64(s.data.Identity.Member), Bytes: s.budgets.Audit, Deadline: flags.Deadline,
		Exempt: flags.Exempt, Publish: s.publishHead, Clock: env.WallClock{}, Logger: s.logger}
	for _, output := range slices.Concat(flags.BestEffort, flags.Required) {
		sink, err := s.openSink(output, rotation)
		if err != nil {
			return err
		}
		sink.Required = slices.Contains(flags.Required, output)
		options.Sinks = append(options.Sinks, sink)
	}
	s.audit = trail.New(options)
	return nil
}

func (s *Server) openSink(output string, r *config.LogRotation) (o trail.SinkOptions, err error) {
	o = trail.SinkOptions{Name: output, From: trail.NewChain()}
	switch address, secure, isCollector := config.AuditCollector(output); {
	case output == outputJournal:
		o.Port, err = trail.OpenJournal()
	case output == outputSyslog:
		o.Port, err = trail.OpenSyslog()
	case isCollector:
		o.Port, err = s.openCollector(address, secure)
	default:
		o.Port, o.From, err = openRecords(output, r)
	}
	return o, err
}

// auditService is by which a collector knows the records of all members.
const auditService = "quorate"

// openCollector opens an output to a collector. Whether that answers shows later: it may start after the members.
func (s *Server) openCollector(address string, secure bool) (trail.Port, error) {
	options := trail.OTLPOptions{Address: address, Service: auditService, Instance: s.cfg.Name}
	if secure {
		var err error
		authority := reload.File{Flag: "--audit-otlp-trusted-ca-file", Path: s.cfg.Audit.CollectorCAFile}
		if options.TLS, err = tlsfiles.Dialing(authority, reload.File{}, reload.File{}); err != nil {
			return nil, err
		}
	}
	return trail.OpenOTLP(options)
}

func openRecords(name string, r *config.LogRotation) (trail.Port, trail.Resume, error) {
	file, from, err := trail.OpenFile(name, trail.Rotation{MaxSizeMB: r.MaxSizeMB, MaxAgeDays: r.MaxAgeDays,
		MaxBackups: r.MaxBackups, LocalTime: r.LocalTime, Compress: r.Compress})
	if err != nil {
		return nil, trail.Resume{}, err
	}
	return file, from, nil
}

// publishHead writes the head of a chain of this member into the replicated state.
func (s *Server) publishHead(ctx context.Context, head audit.Head) error {
	machine, release := s.member.Machine()
	active := machine.ActiveLevel()
	release()
	if active < level.Second {
		return trail.ErrNotYet
	}
	op := &kv.AuditOp{Kind: kv.AuditHead, Head: kv.AuditHeadRow{Member: head.Member, Chain: head.Chain, Sequence: head.Sequence,
		At: head.At.UnixMilli(), Sum: head.Sum[:], File: []byte(head.File[:min(len(head.File), kv.MaxAuditFileBytes)])}}
	result, err := s.member.Propose(ctx, &kv.Command{Audit: op})
	if err == nil {
		err = result.Err
	}
	return notPublished(err)
}

// notPublished says why a head was not published; nil: it was.
func notPublished(err error) error {
	switch {
	case errors.Is(err, kv.ErrHeadBehind):
		return fmt.Errorf("the cluster knows a later record of this chain, or another one with this number: is this file, or "+
			"the whole disk, an older copy? `quorate audit verify` tells: %w", err)
	case err != nil:
		return fmt.Errorf("the cluster did not take it: %w", err)
	}
	return nil
}

// auditPatience bounds the wait for outputs when a member stops.
const auditPatience = 2 * time.Second

// closeAudit writes what waits.
func (s *Server) closeAudit() {
	if s.audit != nil {
		s.audit.Close(auditPatience)
	}
}

// collectAudit shows the outputs of records.
func (s *Server) collectAudit(e *metrics.Emitter) {
	if s.audit == nil {
		return
	}
	sinks, refused := s.audit.Status()
	for i := range sinks {
		sink := &sinks[i]
		blocked := 0.0
		if sink.Blocked {
			blocked = 1
		}
		e.Counter("quorate_audit_records_total", "Records of calls that an output has "+
			"taken.", float64(sink.Taken), "output", sink.Name)
		e.Counter("quorate_audit_dropped_total", "Records of calls that an output had no room for.", float64(sink.Dropped),
			"output", sink.Name)
		e.Counter("quorate_audit_failures_total", "Attempts to write records that "+
			"failed.", float64(sink.Failed), "output", sink.Name)
		e.Gauge("quorate_audit_waiting_bytes", "Records of calls that wait for an output.", float64(sink.WaitingBytes),
			"output", sink.Name)
		e.Gauge("quorate_audit_blocked", "Whether calls are refused because a required output takes no records.", blocked,
			"output", sink.Name)
	}
	e.Counter("quorate_audit_refused_total", "Calls that were refused because they could not be recorded.", float64(refused))
}
