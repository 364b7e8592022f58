package shard

import (
	"math"

	"github.com/shoalsearch/shoal/shard/match"
)

// ScoreText scores a file that is in no shard as a search would score it for the same matches, but
// without symbols. So the files of a commit that is not indexed have the same order as in the
// index. spans are the first matches in its content, in order; matches is the number of all matches.
// Without matches, the path alone decides. Within one repository its scores can be compared with
// those of a search.
func ScoreText(path string, content []byte, spans []match.Span, matches int) float64 {
	best := 0.0
	for _, sp := range spans[:min(len(spans), maxScoredMatches)] {
		if sp.Start < sp.End {
			best = max(best, scoreShapeOf(content, sp, max(0, sp.Start-scoreSight), min(len(content), sp.End+scoreSight)))
		}
	}

	score := best + scoreCount*math.Log2(float64(1+matches))
	if len(spans) > 0 {
		score += scoreEarly / (1 + float64(spans[0].Start)/scoreEarlyAt)
	}

	score -= scoreCategory[min(int(categoryOf(path)), len(scoreCategory)-1)]
	return math.Round(score)
}
