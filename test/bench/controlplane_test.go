package main

import (
	"testing"
	"time"
)

func TestControlPlaneFlags(t *testing.T) {
	f := newFlags("k8s", nil)
	given := controlPlaneFlags(f)
	if err := f.set.Parse([]string{"--nodes", "500", "--values", "random"}); err != nil {
		t.Fatal(err)
	}
	p := given()
	if p.load.Pods != 1000 || p.rate < 109.9 || p.rate > 110.1 || !p.load.Random || p.load.CompactEvery != 10*time.Second ||
		p.load.CheckEvery != 5*time.Minute {
		t.Errorf("got %+v", p)
	}
}
