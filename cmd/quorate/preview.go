package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/server"
)

// preview implements ctl.Preview: what --memory leaves of settings, and what is wrong with files.
func preview(c *config.Config) (inEffect []string, faults []error) {
	limit, err := memoryLimit(c.Limits.Memory, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, []error{err}
	}
	bounds, err := server.Bounds(c, memory.Divide(limit))
	if err != nil {
		return nil, []error{err}
	}
	inEffect = append(inEffect, fmt.Sprintf("In effect on this machine: %d MiB of memory for the process, and of that",
		limit>>20))
	for _, b := range bounds {
		inEffect = append(inEffect, fmt.Sprintf("%s: %d", b.Setting, b.Bytes))
	}
	return inEffect, server.FileFaults(c, time.Now())
}
