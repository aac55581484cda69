package doctor

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

func newCodes(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "codes", Short: "List all codes, and when each is found", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t := &command.Table{}
			t.Add("CODE", "SEVERITY", "FOUND WHEN")
			for _, row := range doctor.Codes() {
				t.Add(string(row.Code), row.Impact, row.Means)
			}
			t.Print(s.Out)
			return nil
		},
	}
}
