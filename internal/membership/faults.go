package membership

// Faults break a rule each, as negative controls of the exploration of what operators do. Only tests set them.
type Faults struct {
	CountLaggards  bool // a voter that answers counts, whether it has caught up or not
	ReplaceTheGone bool // a newcomer may take the place of a member that is gone
	AnyName        bool // two members may bear one name
	NeverOverdue   bool // a job waits for its newcomers to start as long as it takes
	NoRivals       bool // jobs may contradict each other
	NobodyPasses   bool // every job waits for those before it
	ResetTheSilent bool // a voter that is only silent is removed to make room for one at its URL
	JoinTakesVotes bool // a process that joins may replace a voter that works
	CareShrinks    bool // automatic care removes a dead voter for which there is no successor
	JobByClocks    bool // a newcomer's time to start is judged by the clocks of two leaders
	CareByClocks   bool // and so is the hour of automatic care's budget
}
