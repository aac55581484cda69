package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/server"
)

// Ensure that a place that is away for longer than the memory of the member lasts leaves a gap that is noted at the place, told in
// the status and found by the doctor, and that a new base ends it without a word of an operator; writes go on meanwhile.
func TestServer_shipsAfterOutage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	place := filepath.Join(t.TempDir(), "place")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	b := &shipped{t: t, ctx: ctx, url: "file://" + place}
	s, err := server.Start(ctx, loadConfig(t, "--name", "m", "--data-dir", filepath.Join(t.TempDir(), "m"),
		"--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0", "--max-request-bytes=100000",
		"--initial-advertise-peer-urls=http://127.0.0.1:1", "--initial-cluster=m=http://127.0.0.1:1", "--backup-places", b.url),
		server.Options{Logger: slog.New(slog.DiscardHandler), Memory: memory.Divide(memory.MinLimit)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.WithoutCancel(ctx)) }()
	b.dial(s)
	b.start()
	b.until("at first", b.write())
	before := b.last

	if err := os.Rename(place, place+"-away"); err != nil {
		t.Fatal(err)
	}
	kept := memory.Divide(memory.MinLimit).Shipped
	random, value := rand.NewChaCha8([32]byte{1}), make([]byte, 90_000)
	for written := int64(0); written < 2*(kept.Kept+kept.Waiting); written += 90_000 {
		_, _ = random.Read(value) // it does not fail; segments that wait are packed, and must not become small by that
		if _, err := b.client.Put(ctx, fmt.Sprintf("large%d", written), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	for b.last.GetTrouble() == "" {
		if b.last, err = b.api().Status(ctx, &quoratepb.BackupStatusRequest{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
	if err := os.Rename(place+"-away", place); err != nil {
		t.Fatal(err)
	}
	b.until("after the place came back", b.write())
	got := b.last
	if got.GetGaps() != before.GetGaps()+1 || got.GetGap().GetAfter() == 0 || got.GetBase().GetIndex() <= got.GetGap().GetAfter() ||
		got.GetGeneration() != before.GetGeneration() || got.GetTrouble() != "" {
		t.Errorf("before %v\nafter %v", before, got)
	}
	if notes, err := filepath.Glob(filepath.Join(place, "gap", "*", "*")); len(notes) != 1 || err != nil {
		t.Errorf("notes of gaps: %v, %v", notes, err)
	}
	collected, err := quoratepb.NewDoctorClient(b.client.ActiveConnection()).Collect(ctx, &quoratepb.CollectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	findings := doctor.Judge(collected)
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Code == doctor.BackupGap }) {
		t.Errorf("the doctor finds %v", findings)
	}
}
