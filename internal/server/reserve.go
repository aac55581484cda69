package server

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// reservePause is how often the room on the disks is looked at: at 500 MB a second, half of the default reserve.
const reservePause = 250 * time.Millisecond

// watchDisks begins to look at the room on this member's disks.
func (s *Server) watchDisks(context.Context, Options) error {
	dirs := []string{s.cfg.Storage.DataDir}
	if s.cfg.Storage.WALDir != "" {
		dirs = append(dirs, s.cfg.Storage.WALDir)
	}
	s.reserve = reserve.New(files.Disk, s.cfg.Storage.DiskReserveBytes, dirs...)
	s.lookAtDisks()
	s.wg.Go(func() {
		ticker := time.NewTicker(reservePause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.lookAtDisks()
			case <-s.ctx.Done():
				return
			}
		}
	})
	return nil
}

func (s *Server) lookAtDisks() {
	changed, err := s.reserve.Look()
	switch {
	case err != nil:
		s.logger.Debug("cannot tell the room on the disk", "err", err)
	case changed && s.reserve.Low():
		s.logger.Warn("the disk is nearly full: clients' writes that grow, backups and received snapshots are refused until "+
			"there is room; reads, deletions and compactions go on", "available-bytes", s.reserve.AvailableBytes(),
			"disk-reserve-bytes", s.cfg.Storage.DiskReserveBytes)
	case changed:
		s.logger.Info("the disk has room again: writes go on", "available-bytes", s.reserve.AvailableBytes())
	}
}

// lowDisk says in a sentence that this member's disk is nearly full, and what to do; empty: it has room.
func (s *Server) lowDisk() string {
	if !s.reserve.Low() {
		return ""
	}
	const mib = 1 << 20
	// Writes are accepted again once an eighth more than the reserve is free.
	needed := s.cfg.Storage.DiskReserveBytes / 8 * 9 / mib
	return fmt.Sprintf("disk of %s nearly full: %d MiB free, reserve %d MiB (--disk-reserve-bytes): it refuses its own "+
		"clients' writes that grow, and backups, until %d MiB are free; free space on the disk of its --data-dir (or "+
		"--wal-dir), or delete keys and compact; remove nothing inside these directories "+
		"", s.cfg.Name, s.reserve.AvailableBytes()/mib,
		s.cfg.Storage.DiskReserveBytes/mib, needed)
}

// reserveMetrics shows the room, so that an alert comes before the refusals.
func (s *Server) reserveMetrics() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_disk_available_bytes", Help: "Room on the fuller one of the disks of data and log.",
		}, func() float64 { return float64(s.reserve.AvailableBytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_disk_reserve_low", Help: "1 while writes that grow are refused because the disk is nearly full.",
		}, func() float64 {
			if s.reserve.Low() {
				return 1
			}
			return 0
		}),
	}
}
