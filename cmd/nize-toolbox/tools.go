package main

// tools is the table of all tools. Schemas are written out: they are what a
// model reads, so every word counts.
func (b *toolbox) tools() []tool {
	tools := []tool{
		{name: "current_time", title: "Current time", kind: reading,
			description: "Tells what time and date it is now in a city, country or time zone. Answers questions such as \"What time is it in Tokyo?\" and \"What is today's date?\".",
			in:          object(`"place":{"type":"string","maxLength":100,"description":"City, country, IANA zone or UTC offset, e.g. Tokyo, Brazil, Europe/Zurich, UTC+2. UTC if left out."}`),
			out:         clockSchema, run: typed(b.currentTime)},
		{name: "convert_time", title: "Convert time between zones", kind: reading,
			description: "Converts a clock time or date and time from one place to another, daylight saving included. Example: 3 pm in New York, in Berlin.",
			in: object(`"time":{"type":"string","maxLength":60,"description":"Time to convert: 15:04, 3 pm, 2026-01-31 15:04, RFC 3339 or now. A time without a date is today's in the place it is from."},
				"from":{"type":"string","maxLength":100,"description":"Where that time holds: city, country, IANA zone or UTC offset. UTC if left out."},
				"to":{"type":"string","maxLength":100,"description":"Where to convert it to: city, country, IANA zone or UTC offset."}`, "time", "to"),
			out: `{"type":"object","properties":{"from":` + clockSchema + `,"to":` + clockSchema + `,"note":{"type":"string","description":"Something special about that time"}},"required":["from","to"]}`,
			run: typed(b.convertTime)},
		{name: "time_difference", title: "Time difference between places", kind: reading,
			description: "Tells how many hours two places are apart, and the time in both. Example: how far is Tokyo ahead of London?",
			in: object(`"from":{"type":"string","maxLength":100,"description":"First place: city, country, IANA zone or UTC offset."},
				"to":{"type":"string","maxLength":100,"description":"Second place; the answer says how far it is ahead of the first."},
				"date":{"type":"string","maxLength":40,"description":"Day for which to compare, as 2026-01-31; daylight saving matters. Now if left out."}`, "from", "to"),
			out: `{"type":"object","properties":{"from":` + clockSchema + `,"to":` + clockSchema + `,"minutes":{"type":"integer","description":"Minutes that the second place is ahead; negative if it is behind"}},"required":["from","to","minutes"]}`,
			run: typed(b.timeDifference)},
		{name: "date_math", title: "Date arithmetic", kind: reading,
			description: "Adds years, months, weeks and days to a date, tells its weekday and week number, and counts the days until another date. Example: which weekday is 90 days from today; how many days until 2027-01-01?",
			in: object(`"date":{"type":"string","maxLength":40,"description":"Date to start from, as 2026-01-31, or today, tomorrow, yesterday. Today if left out."},
				"years":{"type":"integer","minimum":-10000,"maximum":10000,"description":"Years to add; negative to subtract."},
				"months":{"type":"integer","minimum":-100000,"maximum":100000,"description":"Months to add. The day is kept inside the month: 31 January plus one month is the last of February."},
				"weeks":{"type":"integer","minimum":-500000,"maximum":500000,"description":"Weeks to add."},
				"days":{"type":"integer","minimum":-4000000,"maximum":4000000,"description":"Days to add."},
				"until":{"type":"string","maxLength":40,"description":"Date up to which to count the days, as 2026-12-24 or today."},
				"place":{"type":"string","maxLength":100,"description":"City, country or zone whose today is meant. UTC if left out."}`),
			out: `{"type":"object","properties":{"date":{"type":"string"},"weekday":{"type":"string"},"iso_week":{"type":"string","description":"ISO 8601 week, e.g. 2026-W05"},"day_of_year":{"type":"integer"},"leap_year":{"type":"boolean"},"until":{"type":"string"},"days_until":{"type":"integer"},"weekdays_until":{"type":"integer","description":"Those of the days that are Monday to Friday"}},"required":["date","weekday","iso_week","day_of_year","leap_year"]}`,
			run: typed(b.dateMath)},
		{name: "convert_units", title: "Convert units", kind: pure,
			description: "Converts a measurement between units of length, mass, temperature, volume, area, speed, data, energy, power, pressure, time or angle. Example: 26.2 miles in km, 98.6 °F in °C.",
			in: object(`"value":{"type":"number","description":"How much, in the first unit."},
				"from":{"type":"string","maxLength":40,"description":"Unit of the value, as symbol or name: km, miles, °F, lb, cup, GiB, kWh, psi. Case counts in data units: Mb is megabit, MB megabyte."},
				"to":{"type":"string","maxLength":40,"description":"Unit to convert to, of the same quantity."}`, "value", "from", "to"),
			out: `{"type":"object","properties":{"value":{"type":"number"},"from":{"type":"string"},"result":{"type":"number"},"to":{"type":"string"},"quantity":{"type":"string"},"exact":{"type":"boolean","description":"false if the result was rounded to 15 digits"}},"required":["value","from","result","to","quantity","exact"]}`,
			run: typed(convertUnits)},
		{name: "calculate", title: "Calculate", kind: pure,
			description: "Computes an arithmetic expression, exactly where the result is a finite decimal. Knows + - * / % ^ !, brackets, percent, pi, e, sqrt, cbrt, abs, round(x, decimals), floor, ceil, trunc, min, max, sum, avg, gcd, exp, ln, log (base 10), log2, sin, cos, tan (radians).",
			in:          object(`"expression":{"type":"string","minLength":1,"maxLength":1000,"description":"Expression, e.g. (19.99 * 3 + 4.50) * 1.081 or 2^100 or 200 + 15%*200"}`, "expression"),
			out:         `{"type":"object","properties":{"expression":{"type":"string"},"result":{"type":"number"},"exact":{"type":"boolean","description":"false if the result was rounded to 15 digits"},"fraction":{"type":"string","description":"The exact result as a fraction, where rounding was needed"}},"required":["expression","result","exact"]}`,
			run:         typed(calculate)},
		{name: "roll_dice", title: "Roll dice", kind: reading,
			description: "Rolls dice and adds them up. Example: 2d6+3, d20, 4d6kh3 (keep the highest three), 2d20kl1, d%.",
			in:          object(`"dice":{"type":"string","minLength":1,"maxLength":200,"description":"What to roll, in dice notation: 2d6+3"}`, "dice"),
			out:         `{"type":"object","properties":{"dice":{"type":"string"},"total":{"type":"integer"},"terms":{"type":"array","items":{"type":"object","properties":{"term":{"type":"string"},"rolls":{"type":"array","items":{"type":"integer"}},"kept":{"type":"array","items":{"type":"integer"}},"sum":{"type":"integer"}},"required":["term","sum"]}},"min":{"type":"integer","description":"Least possible total"},"max":{"type":"integer","description":"Greatest possible total"}},"required":["dice","total","terms","min","max"]}`,
			run:         typed(b.rollDice)},
		{name: "random_pick", title: "Pick at random", kind: reading,
			description: "Picks one or several items of a list at random, none of them twice. For drawing lots, choosing who goes first, or shuffling (count = number of items).",
			in: object(`"items":{"type":"array","items":{"type":"string","maxLength":1000},"minItems":1,"maxItems":1000,"description":"What to choose from"},
				"count":{"type":"integer","minimum":1,"maximum":1000,"description":"How many to pick, 1 if left out"}`, "items"),
			out: `{"type":"object","properties":{"picked":{"type":"array","items":{"type":"string"}},"of":{"type":"integer"}},"required":["picked","of"]}`,
			run: typed(b.randomPick)},
		{name: "text_stats", title: "Count words and characters", kind: pure,
			description: "Counts the characters, bytes, words, lines, sentences and paragraphs of a text and estimates the reading time.",
			in:          object(longText, "text"),
			out:         `{"type":"object","properties":{"characters":{"type":"integer"},"characters_without_spaces":{"type":"integer"},"bytes":{"type":"integer"},"words":{"type":"integer"},"lines":{"type":"integer"},"sentences":{"type":"integer"},"paragraphs":{"type":"integer"},"reading_seconds":{"type":"integer"}},"required":["characters","characters_without_spaces","bytes","words","lines","sentences","paragraphs","reading_seconds"]}`,
			run:         typed(textStats)},
		{name: "change_case", title: "Change letter case", kind: pure,
			description: "Writes a text in another case: UPPER, lower, Title, Sentence, or as an identifier in camelCase, PascalCase, snake_case, kebab-case or CONSTANT_CASE.",
			in:          object(longText+`,"case":{"type":"string","enum":["upper","lower","title","sentence","camel","pascal","snake","kebab","constant"],"description":"The case to write it in"}`, "text", "case"),
			out:         textSchema, run: typed(changeCase)},
		{name: "encode_text", title: "Encode or decode text", kind: pure,
			description: "Encodes a text as base64, base64url, percent-encoding for URLs, or hex, or decodes it.",
			in: object(longText+`,"encoding":{"type":"string","enum":["base64","base64url","url","hex"],"description":"The encoding"},
				"direction":{"type":"string","enum":["encode","decode"],"description":"encode if left out"}`, "text", "encoding"),
			out: textSchema, run: typed(encodeText)},
		{name: "hash_text", title: "Hash text", kind: pure,
			description: "Computes the checksum or hash of a text's UTF-8 bytes, in hex. MD5, SHA-1 and CRC-32 are for checking copies, not for security.",
			in:          object(longText+`,"algorithm":{"type":"string","enum":["md5","sha1","sha256","sha512","crc32"],"description":"sha256 if left out"}`, "text"),
			out:         `{"type":"object","properties":{"algorithm":{"type":"string"},"hash":{"type":"string"}},"required":["algorithm","hash"]}`,
			run:         typed(hashText)},
	}
	return append(tools, b.noteTools()...)
}

func (b *toolbox) noteTools() []tool {
	return []tool{
		{name: "note_add", title: "Add a note", kind: adding,
			description: "Writes a note into the notebook on this computer and returns its id. For remembering something: a list, an idea, a decision.",
			in: object(`"text":{"type":"string","minLength":1,"maxLength":65536,"description":"The note itself"},
				"title":{"type":"string","maxLength":200,"description":"Title; the first line of the text if left out"},
				"tags":{"type":"array","items":{"type":"string","minLength":1,"maxLength":50},"maxItems":20,"description":"Words to find it by"}`, "text"),
			out: noteSchema, run: typed(b.noteAdd)},
		{name: "note_list", title: "List notes", kind: reading,
			description: "Lists the notes of the notebook, the newest first, with ids and titles.",
			in:          object(`"tag":{"type":"string","maxLength":50,"description":"Only notes with this tag"},` + limit),
			out:         headsSchema, run: typed(b.noteList)},
		{name: "note_read", title: "Read a note", kind: reading,
			description: "Returns the whole text of one note of the notebook.",
			in:          object(noteID, "id"),
			out:         noteSchema, run: typed(b.noteRead)},
		{name: "note_search", title: "Search notes", kind: reading,
			description: "Finds the notes that hold all of the given words in title, text or tags, the newest first.",
			in:          object(`"query":{"type":"string","minLength":1,"maxLength":200,"description":"Words to look for; all must occur, in any order and case"},`+limit, "query"),
			out:         headsSchema, run: typed(b.noteSearch)},
		{name: "note_delete", title: "Delete a note", kind: erasing,
			description: "Deletes one note of the notebook for good. There is no way to get it back.",
			in:          object(noteID, "id"),
			out:         `{"type":"object","properties":{"deleted":{"type":"integer"},"title":{"type":"string"},"left":{"type":"integer","description":"How many notes are left"}},"required":["deleted","title","left"]}`,
			run:         typed(b.noteDelete)},
	}
}

// object is the schema of arguments with these properties.
func object(properties string, required ...string) string {
	s := `{"type":"object","properties":{` + properties + `},"additionalProperties":false`
	for i, name := range required {
		if i == 0 {
			s += `,"required":["` + name + `"`
		} else {
			s += `,"` + name + `"`
		}
	}
	if len(required) > 0 {
		s += "]"
	}
	return s + "}"
}

const (
	longText    = `"text":{"type":"string","maxLength":1000000,"description":"The text"}`
	limit       = `"limit":{"type":"integer","minimum":1,"maximum":200,"description":"How many at most, 20 if left out"}`
	noteID      = `"id":{"type":"integer","minimum":1,"description":"The note's id, as note_add, note_list and note_search give it"}`
	textSchema  = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	clockSchema = `{"type":"object","properties":{"place":{"type":"string"},"zone":{"type":"string","description":"IANA zone"},"time":{"type":"string","description":"RFC 3339"},"date":{"type":"string"},"clock":{"type":"string","description":"24 hours, hh:mm"},"weekday":{"type":"string"},"utc_offset":{"type":"string"},"note":{"type":"string"}},"required":["place","zone","time","date","clock","weekday","utc_offset"]}`
	noteSchema  = `{"type":"object","properties":{"id":{"type":"integer"},"title":{"type":"string"},"text":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"created":{"type":"string"}},"required":["id","title","text","tags","created"]}`
	headsSchema = `{"type":"object","properties":{"notes":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"created":{"type":"string"},"snippet":{"type":"string"}},"required":["id","title","tags","created"]}},"total":{"type":"integer","description":"How many fit, also beyond the limit"}},"required":["notes","total"]}`
)
