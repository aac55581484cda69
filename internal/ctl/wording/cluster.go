package wording

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
)

// Stage says by which protocol the configuration came, and whether the change is over.
func Stage(cluster *quoratepb.Cluster) string {
	text := "settled"
	switch {
	case cluster.GetJoint():
		text = "joint"
	case !cluster.GetSettled():
		text = "settling"
	}
	if cluster.GetProtocol() == "" || cluster.GetProtocol() == "auto" {
		return text
	}
	return cluster.GetProtocol() + ", " + text
}

// Tolerates says how many more voters may fail, beside those that have failed, or that writes have stopped.
func Tolerates(s *quoratepb.Strength) string {
	if n := s.GetTolerates(); n < 0 {
		return "writes have stopped: " + plural.Of(-n, "more voter") + " must be up"
	}
	return fmt.Sprintf("tolerates %d more %s", s.GetTolerates(), plural.Word(s.GetTolerates(), "failure"))
}
