package index

import (
	"testing"

	"nize/store"
)

// Chinese people ask in Chinese for tools that are described in English, and
// the other way round is served by pairs of signs.
func TestSearchChinese(t *testing.T) {
	x := officeIndex(t, Options{})
	for in, want := range map[string]string{
		"北京明天的天气预报":        "weather:get_forecast",
		"明天天氣預報":           "weather:get_forecast",
		"现在的气温是多少":         "weather:get_current",
		"上海的空气质量怎么样":       "weather:air_quality",
		"空氣品質如何":           "weather:air_quality",
		"创建一个问题":           "github:create_issue",
		"列出仓库的所有问题":        "github:list_issues",
		"建立拉取請求":           "github:create_pull_request",
		"合并这个拉取请求":         "github:merge_pull_request",
		"删除分支":             "github:delete_branch",
		"在仓库里搜索代码":         "github:search_code",
		"搜尋程式碼":            "github:search_code",
		"读取文件内容":           "files:read_file",
		"把文本写入文件":          "files:write_file",
		"删除这个文件":           "files:delete_file",
		"刪除檔案":             "files:delete_file",
		"列出目录":             "files:list_directory",
		"查找文件":             "files:search_files",
		"给张三发送邮件":          "mail:send_email",
		"寄一封電子郵件":          "mail:send_email",
		"搜索收件箱":            "mail:search_inbox",
		"在日历上创建会议":         "mail:create_event",
		"查询数据库":            "db:query",
		"列出数据库的表":          "db:list_tables",
		"把这段文字翻译成英文":       "misc:translate_text",
		"人民币换算成美元的汇率":      "misc:convert_currency",
		"掷骰子":              "misc:roll_dice",
		"转换时区":             "misc:convert_timezone",
		"生成柱状图":            "misc:bar_chart",
		"给网页截图":            "misc:take_screenshot",
		"预订火车票":            "misc:book_train",
		"訂火車票":             "misc:book_train",
		"苹果的股票价格":          "misc:stock_price",
		"附近的餐厅":            "misc:find_restaurant",
		"计算数学":             "misc:calculate",
		"用 send_email 发邮件": "mail:send_email",
	} {
		if got := ids(t, x, Query{Text: in}); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", in, got, want)
		}
	}
	replace(t, x, "travel", []store.Tool{
		tool("travel", "query_ticket", "查询火车票余票信息"),
		tool("travel", "station_code", "根据城市名称查询车站代码"),
		tool("travel", "hotel", "酒店预订服务"),
	})
	for in, want := range map[string]string{
		"查询余票": "travel:query_ticket", "车站代码是什么": "travel:station_code", "我要订酒店": "travel:hotel",
	} {
		if got := ids(t, x, Query{Text: in}); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", in, got, want)
		}
	}
}
