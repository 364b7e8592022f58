package model

import "strings"

// Limit is how many tokens a model reads and writes.
type Limit struct{ Window, Output int }

// knownLimits lists models by the beginning of their name. A model that is not listed gets the
// last row; a TooLong error then corrects it.
var knownLimits = []struct {
	prefix string
	limit  Limit
}{
	{"claude-3-haiku", Limit{200_000, 4096}}, {"claude-3-opus", Limit{200_000, 4096}}, {"claude-3-5", Limit{200_000, 8192}},
	{"claude", Limit{200_000, 32_000}},
	{"gpt-3.5", Limit{16_000, 4096}}, {"gpt-4.1", Limit{1_000_000, 32_000}}, {"gpt-4o", Limit{128_000, 16_000}}, {"gpt-5", Limit{400_000, 64_000}},
	{"o1", Limit{200_000, 64_000}}, {"o3", Limit{200_000, 64_000}}, {"o4", Limit{200_000, 64_000}},
	{"gemini", Limit{1_000_000, 64_000}},
	{"deepseek", Limit{128_000, 8192}}, {"grok", Limit{256_000, 32_000}},
	{"mistral", Limit{128_000, 16_000}}, {"codestral", Limit{256_000, 16_000}}, {"devstral", Limit{128_000, 16_000}}, {"magistral", Limit{40_000, 16_000}},
	{"qwen", Limit{128_000, 16_000}}, {"llama", Limit{128_000, 8192}}, {"nova", Limit{300_000, 8192}},
	{"", Limit{128_000, 8192}},
}

// Limits returns the limits of a model by its name.
func Limits(model string) Limit {
	name := strings.ToLower(model)
	for _, k := range knownLimits {
		// Services put the vendor before the name, with a slash or dot. The empty prefix matches
		// all others.
		if strings.HasPrefix(name, k.prefix) || k.prefix != "" && (strings.Contains(name, "/"+k.prefix) || strings.Contains(name, "."+k.prefix)) {
			return k.limit
		}
	}
	return knownLimits[len(knownLimits)-1].limit
}
